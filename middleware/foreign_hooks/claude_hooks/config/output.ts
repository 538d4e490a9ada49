/**
 * The outputs of hooks, as the home systems write them.
 *
 * @module
 */
import type { Decision } from "./dialect.ts";

/** The output of a hook. */
export interface HookOutput {
  /** False ends the run, at events that allow it. Default: true. */
  readonly continue?: boolean;
  /** The reason for the end of the run, for the person. */
  readonly stopReason?: string;
  /** Qoder: hides the result and `systemMessage` from the person. Default: false. */
  readonly suppressOutput?: boolean;
  /** A text for the person. */
  readonly systemMessage?: string;
  /** The decision, at events without a field of their own for it. */
  readonly decision?: "approve" | "block";
  /** The reason for the model, if it is blocked. */
  readonly reason?: string;
  /** The fields of one event. */
  readonly hookSpecificOutput?: HookSpecificOutput;
  /** The hook continues in the background: the run does not wait, and the hook decides nothing. */
  readonly async?: boolean;
  /** Milliseconds that it may continue. Then its signal aborts. Default: no limit for a callback, 15,000 for a command. */
  readonly asyncTimeout?: number;
}

/** The fields of one event in an output. */
export interface HookSpecificOutput {
  /** The event. */
  readonly hookEventName: string;
  /** PreToolUse: the decision about the call. */
  readonly permissionDecision?: Decision;
  /** PreToolUse: why; for the model after a deny, for the person after an ask. */
  readonly permissionDecisionReason?: string;
  /** PreToolUse: the input that replaces the input of the call. */
  readonly updatedInput?: Readonly<Record<string, unknown>>;
  /** A text for the model. */
  readonly additionalContext?: string;
  /** PostToolUse: the result that the model receives instead. */
  readonly updatedToolOutput?: unknown;
  /** PostToolUse: the same, for tools whose names begin with `mcp__`. */
  readonly updatedMCPToolOutput?: unknown;
  /** PermissionRequest: the answer in place of a person. */
  readonly decision?: PermissionAnswer;
  /** PermissionDenied: whether the model may try again. */
  readonly retry?: boolean;
  /** SessionStart, CwdChanged, FileChanged: the files to watch. */
  readonly watchPaths?: readonly string[];
  /** SessionStart: a text before the first prompt, from the person. */
  readonly initialUserMessage?: string;
  /** WorktreeCreate: the path of the worktree. */
  readonly worktreePath?: string;
  /** MessageDisplay: the text that the person sees instead. */
  readonly displayContent?: string;
}

/** An answer in place of a person. */
export interface PermissionAnswer {
  /** The decision. */
  readonly behavior: "allow" | "deny";
  /** After an allow: the input that replaces the input of the call. */
  readonly updatedInput?: Readonly<Record<string, unknown>>;
  /** After an allow: changes of the permission rules. */
  readonly updatedPermissions?: readonly unknown[];
  /** After a deny: why, for the model. */
  readonly message?: string;
  /** After a deny: whether the run ends. */
  readonly interrupt?: boolean;
}
