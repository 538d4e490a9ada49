/**
 * The hooks of GitHub Copilot's SDK, with their inputs and outputs.
 *
 * @module
 */
import type { ToolResultObject } from "./outputs.ts";

// The fields that the inputs of all hooks have.

/** The fields that every hook receives. `T` is the type of the time. */
export interface HookInput<T = number> {
  /** The session that triggered the hook. A subagent has a session of its own. */
  sessionId: string;
  /** Milliseconds since 1970, or a `Date` in the dialect "node". */
  timestamp: T;
  /** The working directory of the agent. */
  cwd: string;
  /** The same, under the name of the Node SDK. */
  workingDirectory: string;
}

// The inputs and outputs of the hooks around a session: its start, its prompts, its failures and its end.

/** The input when a session begins or continues. */
export interface SessionStartHookInput<T = number> extends HookInput<T> {
  /** "startup" if the session begins with a prompt ("new" in the dialect "node"), "resume" if it is known. */
  source: "startup" | "resume" | "new";
  /** The prompt that the session begins with, as it arrived: hooks at `input`, such as those of `redact()`, have not changed it. */
  initialPrompt?: string;
}

/** The output when a session begins or continues. */
export interface SessionStartHookOutput {
  /** A text for the model: before the prompt of a new session, after the prompt of a known one. */
  additionalContext?: string;
  /** `systemMessage`, `availableTools`, `excludedTools`, and `model` if the option `models` contains it. */
  modifiedConfig?: Record<string, unknown>;
}

/** The input when a person has sent a prompt. */
export interface UserPromptSubmittedHookInput<T = number> extends HookInput<T> {
  /** The prompt. */
  prompt: string;
}

/** The output for a prompt. A hook cannot refuse it. */
export interface UserPromptSubmittedHookOutput {
  /** Replaces the prompt. */
  modifiedPrompt?: string;
  /** A text for the model, after the prompt. */
  additionalContext?: string;
  /** Hides the answer from the person. */
  suppressOutput?: boolean;
}

/** The input before a prompt is stored. */
export interface UserPromptTransformedHookInput<T = number> extends HookInput<T> {
  /** The prompt as sent. */
  prompt: string;
  /** The prompt as it is about to be stored. */
  transformedPrompt: string;
}

/** The output before a prompt is stored. */
export interface UserPromptTransformedHookOutput {
  /** Replaces the stored prompt. */
  modifiedTransformedPrompt?: string;
}

/** The input after a failure. */
export interface ErrorOccurredHookInput<T = number> extends HookInput<T> {
  /** The message of the error. */
  error: string;
  /** The place of the error. */
  errorContext: "model_call" | "tool_execution" | "system" | "user_input";
  /** Whether a retry may help. */
  recoverable: boolean;
}

/** The output after a failure. */
export interface ErrorOccurredHookOutput {
  /** Hides the failed result of a tool from the person. */
  suppressOutput?: boolean;
  /** Retries a model request or a call, continues without it, or fails. */
  errorHandling?: "retry" | "skip" | "abort";
  /** The most retries in a row. Default: 1. */
  retryCount?: number;
  /** A text for the person. */
  userNotification?: string;
}

/** The input before the agent stops. */
export interface AgentStopHookInput<T = number> extends HookInput<T> {
  /** The reason for the stop. */
  stopReason?: string;
  /** The file that `transcript()` writes. */
  transcriptPath?: string;
  /** Whether a hook has kept the agent from stopping before. */
  stopHookActive?: boolean;
}

/** The output before the agent stops. */
export interface AgentStopHookOutput {
  /** Keeps the agent going, or lets it stop. */
  decision?: "block" | "allow";
  /** The next message for the model. */
  reason?: string;
}

/** The input when a subagent begins. */
export interface SubagentStartHookInput<T = number> extends HookInput<T> {
  /** The file that `transcript()` writes; empty without one. */
  transcriptPath: string;
  /** The name of the subagent. */
  agentName: string;
}

/** The output when a subagent begins. */
export interface SubagentStartHookOutput {
  /** A text for the subagent, before its prompt. */
  additionalContext?: string;
}

/** The input before a subagent stops. */
export interface SubagentStopHookInput<T = number> extends HookInput<T> {
  /** The file that `transcript()` writes; empty without one. */
  transcriptPath: string;
  /** The run of the subagent. */
  agentId: string;
  /** The name of the subagent. */
  agentType: string;
  /** The same. */
  agentName: string;
  /** Its final answer. */
  response: string;
  /** The reason for the stop. */
  stopReason: "end_turn";
}

/** The output before a subagent stops. */
export interface SubagentStopHookOutput {
  /** Keeps the subagent going, or lets it stop. */
  decision?: "block" | "allow";
  /** The next message for the subagent. */
  reason?: string;
  /** Replaces the answer that its caller receives, if the subagent stops. */
  modifiedResponse?: string;
}

/** The input before a compaction. */
export interface PreCompactHookInput<T = number> extends HookInput<T> {
  /** The file that `transcript()` writes; empty without one. */
  transcriptPath: string;
  /** The cause. */
  trigger: "manual" | "auto";
  /** The instructions for the summary. */
  customInstructions: string;
}

/** The input when a person is asked. */
export interface NotificationHookInput<T = number> extends HookInput<T> {
  /** The text. */
  message: string;
  /** A short title. */
  title: string;
  /** The cause. */
  notification_type: "permission_prompt";
}

/** The output when a person is asked. */
export interface NotificationHookOutput {
  /** A text for the model, with the next request. */
  additionalContext?: string;
}

/** The input when a run ends. */
export interface SessionEndHookInput<T = number> extends HookInput<T> {
  /** The reason for the end. */
  reason: "complete" | "error" | "abort" | "timeout" | "user_exit";
  /** The final answer, or the part of it that exists. */
  finalMessage?: string;
  /** The message of the error. */
  error?: string;
}

/** The output when a run ends. */
export interface SessionEndHookOutput {
  /** Hides the final answer from the person. */
  suppressOutput?: boolean;
  /** The actions of the cleanup: in an event `data` named `copilot_hooks.session_end`. */
  cleanupActions?: (string | Record<string, unknown>)[];
  /** A summary: in the same event. */
  sessionSummary?: string;
}

// The inputs and outputs of the hooks around a call.

/** The input before a call. */
export interface PreToolUseHookInput<T = number> extends HookInput<T> {
  /** The tool. */
  toolName: string;
  /** Its input. */
  toolArgs: unknown;
}

/** The output before a call. */
export interface PreToolUseHookOutput {
  /** Allows the call without a question, denies it, or asks a person. */
  permissionDecision?: "allow" | "deny" | "ask";
  /** The reason: for the model after a deny, for the person after an ask. */
  permissionDecisionReason?: string;
  /** Replaces the input, in the transcript too. */
  modifiedArgs?: unknown;
  /** A text for the model, after the results. */
  additionalContext?: string;
  /** Withholds the result from the model and the person. */
  suppressOutput?: boolean;
}

/** The input before the guards decide about a call. */
export interface PermissionRequestHookInput<T = number> extends HookInput<T> {
  /** The tool. */
  toolName: string;
  /** Its input. */
  toolInput: unknown;
}

/** The output before the guards decide about a call. */
export interface PermissionRequestHookOutput {
  /** Answers questions about the call in place of a person, or denies it. */
  behavior?: "allow" | "deny";
  /** The reason of a denial, for the model. */
  message?: string;
  /** Whether a denial ends the run. */
  interrupt?: boolean;
}

/** The input before a call of a tool of an MCP server. */
export interface PreMcpToolCallHookInput<T = number> extends HookInput<T> {
  /** The id of the call. */
  toolCallId?: string;
  /** The server. */
  serverName: string;
  /** The name of the tool on the server. */
  toolName: string;
  /** Its input. */
  arguments: unknown;
  /** The metadata of the request. */
  _meta?: Record<string, unknown>;
}

/** The output before a call of a tool of an MCP server. */
export interface PreMcpToolCallHookOutput {
  /** Replaces the metadata; null removes it. */
  metaToUse?: Record<string, unknown> | null;
}

/** The input after a successful call. */
export interface PostToolUseHookInput<T = number> extends HookInput<T> {
  /** The tool. */
  toolName: string;
  /** Its input. */
  toolArgs: unknown;
  /** The result. */
  toolResult: ToolResultObject;
}

/** The output after a successful call. */
export interface PostToolUseHookOutput {
  /** Replaces the result: an object like it, a text, or another value, which the model receives as JSON. */
  modifiedResult?: unknown;
  /** A text for the model, after the results. */
  additionalContext?: string;
  /** Withholds the result from the conversation; with the option `document`, hides it from the person only. */
  suppressOutput?: boolean;
}

/** The input after a failed call. */
export interface PostToolUseFailureHookInput<T = number> extends HookInput<T> {
  /** The tool. */
  toolName: string;
  /** Its input. */
  toolArgs: unknown;
  /** The message of the error, as thrown. */
  error: string;
}

/** The output after a failed call. */
export interface PostToolUseFailureHookOutput {
  /** A text for the model, after the results. */
  additionalContext?: string;
}

// The set of hooks that users register, and the arguments of each hook.

/** The second argument of every hook. */
export interface HookInvocation {
  /** The session of the outermost run. */
  sessionId: string;
}

/** The third argument of every hook. The home system has none. */
export interface HookOptions {
  /** Aborts when the run no longer waits for the hook. */
  readonly signal: AbortSignal;
  /** Reports a failure of a part of the hook, whose other parts have an output. */
  readonly onFailed: (error: unknown) => void;
  /** Shows a text to the person. One that is temporary is an event `data` named `copilot_hooks.progress`. */
  readonly onProgress: (message: string, temporary?: boolean) => void;
}

/** A hook. Nothing means no opinion. */
export type HookHandler<I, O> = (
  input: I,
  invocation: HookInvocation,
  options: HookOptions,
) => O | null | void | Promise<O | null | void>;

/** A set of hooks. `T` is the type of the time. */
export interface SessionHooks<T = number> {
  /** When a session begins, or continues with another prompt. */
  readonly onSessionStart?: HookHandler<SessionStartHookInput<T>, SessionStartHookOutput>;
  /** When a person has sent a prompt. */
  readonly onUserPromptSubmitted?: HookHandler<UserPromptSubmittedHookInput<T>, UserPromptSubmittedHookOutput>;
  /** Before a prompt is stored. */
  readonly onUserPromptTransformed?: HookHandler<UserPromptTransformedHookInput<T>, UserPromptTransformedHookOutput>;
  /** For each call of a response, before the first of them runs. */
  readonly onPreToolUse?: HookHandler<PreToolUseHookInput<T>, PreToolUseHookOutput>;
  /** Before a call of a tool of an MCP server runs. */
  readonly onPreMcpToolCall?: HookHandler<PreMcpToolCallHookInput<T>, PreMcpToolCallHookOutput>;
  /** After a successful call. */
  readonly onPostToolUse?: HookHandler<PostToolUseHookInput<T>, PostToolUseHookOutput>;
  /** After a failed call; not after one that was denied, late or cut short. */
  readonly onPostToolUseFailure?: HookHandler<PostToolUseFailureHookInput<T>, PostToolUseFailureHookOutput>;
  /** After each failure. */
  readonly onErrorOccurred?: HookHandler<ErrorOccurredHookInput<T>, ErrorOccurredHookOutput>;
  /** Before the agent stops. */
  readonly onAgentStop?: HookHandler<AgentStopHookInput<T>, AgentStopHookOutput>;
  /** When a subagent begins. */
  readonly onSubagentStart?: HookHandler<SubagentStartHookInput<T>, SubagentStartHookOutput>;
  /** Before a subagent stops. */
  readonly onSubagentStop?: HookHandler<SubagentStopHookInput<T>, SubagentStopHookOutput>;
  /** Before a compaction. Commands alone have this hook in the home system. */
  readonly onPreCompact?: HookHandler<PreCompactHookInput<T>, Record<never, never>>;
  /** Before the guards decide about a call. Commands alone have this hook in the home system. */
  readonly onPermissionRequest?: HookHandler<PermissionRequestHookInput<T>, PermissionRequestHookOutput>;
  /** When a person is asked, in the background. Commands alone have this hook in the home system. */
  readonly onNotification?: HookHandler<NotificationHookInput<T>, NotificationHookOutput>;
  /** When a run of a session has ended. A pause does not end it. */
  readonly onSessionEnd?: HookHandler<SessionEndHookInput<T>, SessionEndHookOutput>;
}
