/**
 * The inputs and outputs of the hooks around a call.
 *
 * @module
 */
import type { HookInput } from "./hook_input.ts";
import type { ToolResultObject } from "./result.ts";

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
