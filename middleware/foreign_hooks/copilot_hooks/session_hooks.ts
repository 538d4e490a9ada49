/**
 * The inputs and outputs of the hooks around a session: its start, its prompts, its failures and its end.
 *
 * @module
 */
import type { HookInput } from "./hook_input.ts";

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
  /** Keeps the agent going. */
  decision?: "block";
  /** The next message for the model. */
  reason?: string;
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
