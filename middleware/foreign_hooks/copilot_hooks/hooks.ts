/**
 * The hooks of GitHub Copilot's SDK.
 *
 * @module
 */
import type {
  AgentStopHookInput,
  AgentStopHookOutput,
  ErrorOccurredHookInput,
  ErrorOccurredHookOutput,
  SessionEndHookInput,
  SessionEndHookOutput,
  SessionStartHookInput,
  SessionStartHookOutput,
  UserPromptSubmittedHookInput,
  UserPromptSubmittedHookOutput,
  UserPromptTransformedHookInput,
  UserPromptTransformedHookOutput,
} from "./session_hooks.ts";
import type {
  PostToolUseFailureHookInput,
  PostToolUseFailureHookOutput,
  PostToolUseHookInput,
  PostToolUseHookOutput,
  PreMcpToolCallHookInput,
  PreMcpToolCallHookOutput,
  PreToolUseHookInput,
  PreToolUseHookOutput,
} from "./tool_hooks.ts";

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
  /** When a run of a session has ended. A pause does not end it. */
  readonly onSessionEnd?: HookHandler<SessionEndHookInput<T>, SessionEndHookOutput>;
}
