/**
 * Hooks as they are written for Copilot: what they are given, and what they may give back.
 *
 * @module
 */
import type { ToolResultObject } from "./result.ts";

/** What every hook is given. `T` is how it is told the time. */
export interface HookInput<T = number> {
  /** The session that the hook is about: that of an agent that is a tool is another than its caller's. */
  sessionId: string;
  /** When: milliseconds since 1970, or a `Date` in the dialect "node". */
  timestamp: T;
  /** Where the agent is. */
  cwd: string;
  /** Where the agent is, as the Node SDK names it. */
  workingDirectory: string;
}

/** What a hook is given beside. */
export interface HookInvocation {
  /** The session of the run that nobody else's is above. */
  sessionId: string;
}

/** When a session begins, or goes on. */
export interface SessionStartHookInput<T = number> extends HookInput<T> {
  /** Whether it is new. No session here is opened before its first run, so none is a "startup". */
  source: "startup" | "resume" | "new";
  /** What it begins with: not told, since that is not known when the session is opened. */
  initialPrompt?: string;
}

/** What may be done about a session that begins. */
export interface SessionStartHookOutput {
  /** For the model, before the prompt; in a session that goes on, after it. */
  additionalContext?: string;
  /** `systemMessage`, `availableTools`, `excludedTools`, and `model` where the option `models` knows it. */
  modifiedConfig?: Record<string, unknown>;
}

/** When a person has said something. */
export interface UserPromptSubmittedHookInput<T = number> extends HookInput<T> {
  /** What they said. */
  prompt: string;
}

/** What may be done about a prompt. It cannot be refused. */
export interface UserPromptSubmittedHookOutput {
  /** What is asked instead. */
  modifiedPrompt?: string;
  /** For the model, after the prompt. */
  additionalContext?: string;
  /** Whether the person is not shown the answer. */
  suppressOutput?: boolean;
}

/** When a prompt is about to be kept. */
export interface UserPromptTransformedHookInput<T = number> extends HookInput<T> {
  /** The prompt. */
  prompt: string;
  /** The prompt as it is about to be kept. */
  transformedPrompt: string;
}

/** What may be done about a prompt that is about to be kept. */
export interface UserPromptTransformedHookOutput {
  /** What is kept instead. */
  modifiedTransformedPrompt?: string;
}

/** Before a call is made. */
export interface PreToolUseHookInput<T = number> extends HookInput<T> {
  /** The tool. */
  toolName: string;
  /** Its input. */
  toolArgs: unknown;
}

/** What may be done about a call. */
export interface PreToolUseHookOutput {
  /** Whether it is made: nobody is asked, it is not, or a person decides. */
  permissionDecision?: "allow" | "deny" | "ask";
  /** Why, for the model where it is denied and for the person where they are asked. */
  permissionDecisionReason?: string;
  /** What it is made with instead, in the transcript too. */
  modifiedArgs?: unknown;
  /** For the model, after the results. */
  additionalContext?: string;
  /** Whether the model is not told its result. */
  suppressOutput?: boolean;
}

/** Before a call goes to an MCP server. */
export interface PreMcpToolCallHookInput<T = number> extends HookInput<T> {
  /** The provider's id of the call. */
  toolCallId?: string;
  /** The server. */
  serverName: string;
  /** The tool, as the server names it. */
  toolName: string;
  /** Its input. */
  arguments: unknown;
  /** What is sent beside. */
  _meta?: Record<string, unknown>;
}

/** What may be done about a call to an MCP server. */
export interface PreMcpToolCallHookOutput {
  /** What is sent beside; null for nothing. */
  metaToUse?: Record<string, unknown> | null;
}

/** After a call has succeeded. */
export interface PostToolUseHookInput<T = number> extends HookInput<T> {
  /** The tool. */
  toolName: string;
  /** What it was made with. */
  toolArgs: unknown;
  /** What it came to. */
  toolResult: ToolResultObject;
}

/** What may be done about a result. */
export interface PostToolUseHookOutput {
  /** What it is instead: such an object, a text, or whatever else, which the model reads as JSON. */
  modifiedResult?: unknown;
  /** For the model, after the results. */
  additionalContext?: string;
  /** Whether the model is not told the result. */
  suppressOutput?: boolean;
}

/** After a call has failed. */
export interface PostToolUseFailureHookInput<T = number> extends HookInput<T> {
  /** The tool. */
  toolName: string;
  /** What it was made with. */
  toolArgs: unknown;
  /** What the model is told of the failure. */
  error: string;
}

/** What may be done about a call that failed. */
export interface PostToolUseFailureHookOutput {
  /** Guidance for the model, after the results. */
  additionalContext?: string;
}

/** When something has failed. */
export interface ErrorOccurredHookInput<T = number> extends HookInput<T> {
  /** The message. */
  error: string;
  /** Where. */
  errorContext: "model_call" | "tool_execution" | "system" | "user_input";
  /** Whether trying again may help. */
  recoverable: boolean;
}

/** What may be done about a failure. */
export interface ErrorOccurredHookOutput {
  /** Accepted, without effect: events never say what a failure was. */
  suppressOutput?: boolean;
  /** Try again, which a request or a call can be; go on without it; or fail. */
  errorHandling?: "retry" | "skip" | "abort";
  /** How often it is tried again in a row, at most. Default: once. */
  retryCount?: number;
  /** For the person. */
  userNotification?: string;
}

/** When the agent is about to stop. */
export interface AgentStopHookInput<T = number> extends HookInput<T> {
  /** Why. */
  stopReason?: string;
  /** The file that the transcript is in, where there is one. */
  transcriptPath?: string;
  /** Whether a hook has kept it from stopping before. */
  stopHookActive?: boolean;
}

/** What may be done about an agent that stops. */
export interface AgentStopHookOutput {
  /** It goes on. */
  decision?: "block";
  /** What it is told then. */
  reason?: string;
}

/** When a run of a session ends. */
export interface SessionEndHookInput<T = number> extends HookInput<T> {
  /** Why. */
  reason: "complete" | "error" | "abort" | "timeout" | "user_exit";
  /** The final answer, or as much of it as there was. */
  finalMessage?: string;
  /** What failed. */
  error?: string;
}

/** What may be said about a run that ends. */
export interface SessionEndHookOutput {
  /** Whether the person is not shown the final answer. */
  suppressOutput?: boolean;
  /** What was cleaned up; told in an event `data` named `copilot_hooks.session_end`. */
  cleanupActions?: string[];
  /** A summary; told there too. */
  sessionSummary?: string;
}

/** How a hook is asked: what none is given at home. */
export interface HookAsking {
  /** Aborts when nobody waits for it any more. */
  readonly signal: AbortSignal;
  /** Tells that a part of it failed, and the rest is to be heard. */
  readonly failed: (error: unknown) => void;
}

/** A hook: at once or later, and nothing leaves everything as it is. */
export type HookHandler<I, O> = (
  input: I,
  invocation: HookInvocation,
  asking: HookAsking,
) => O | null | void | Promise<O | null | void>;

/** A set of hooks. `T` is how they are told the time. */
export interface SessionHooks<T = number> {
  /** When a session begins, or goes on with another prompt. */
  readonly onSessionStart?: HookHandler<SessionStartHookInput<T>, SessionStartHookOutput>;
  /** When a person has said something. */
  readonly onUserPromptSubmitted?: HookHandler<UserPromptSubmittedHookInput<T>, UserPromptSubmittedHookOutput>;
  /** When a prompt is about to be kept. */
  readonly onUserPromptTransformed?: HookHandler<UserPromptTransformedHookInput<T>, UserPromptTransformedHookOutput>;
  /** When the model has made a call, before any call of its response is made. */
  readonly onPreToolUse?: HookHandler<PreToolUseHookInput<T>, PreToolUseHookOutput>;
  /** Before a call goes to an MCP server. */
  readonly onPreMcpToolCall?: HookHandler<PreMcpToolCallHookInput<T>, PreMcpToolCallHookOutput>;
  /** After a call has succeeded. */
  readonly onPostToolUse?: HookHandler<PostToolUseHookInput<T>, PostToolUseHookOutput>;
  /** After a call has failed; not where it was denied, was too late, or was cut short. */
  readonly onPostToolUseFailure?: HookHandler<PostToolUseFailureHookInput<T>, PostToolUseFailureHookOutput>;
  /** When something has failed, each time. */
  readonly onErrorOccurred?: HookHandler<ErrorOccurredHookInput<T>, ErrorOccurredHookOutput>;
  /** When the agent is about to stop. */
  readonly onAgentStop?: HookHandler<AgentStopHookInput<T>, AgentStopHookOutput>;
  /** When a run of a session ends. A run that pauses has not ended. */
  readonly onSessionEnd?: HookHandler<SessionEndHookInput<T>, SessionEndHookOutput>;
}
