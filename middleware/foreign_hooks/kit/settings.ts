/**
 * Settings files of the systems: the hooks of each event, their matchers, and the messages about hooks that never run.
 *
 * @module
 */
import * as z from "zod";

// The hooks of an event, and the errors for hooks that cannot be read.

/** Hooks by event, as settings files of all systems contain them. */
export interface SettingsFile {
  /** The hooks of each event. */
  readonly hooks?: Readonly<Record<string, unknown>> | undefined;
  /** Switches all of them off. Default: false. */
  readonly disableAllHooks?: boolean | undefined;
}

/** Creates the error for a configuration that cannot be read. */
export function invalidHooks(event: string, reason: string): TypeError {
  return new TypeError(`Cannot use the hooks of ${event}: ${reason}`);
}

/** Calls `create`. Adds the event to its `TypeError`. */
export function forEvent<T>(event: string, create: () => T): T {
  try {
    return create();
  } catch (error) {
    throw error instanceof TypeError ? invalidHooks(event, error.message) : error;
  }
}

/** Parses the hooks of an event. Throws a `TypeError` if they are invalid. */
export function parseHooks<S extends z.core.$ZodType>(event: string, schema: S, value: unknown): z.output<S> {
  const { success, data, error } = z.safeParse(schema, value);
  if (!success) throw invalidHooks(event, z.prettifyError(error));
  return data;
}

// Sentences about hooks that never run, for warnings.

/** The events before an action that hooks can prevent. */
const guards = [
  ...["PreToolUse", "PermissionRequest", "UserPromptSubmit", "UserPromptExpansion", "PreCompact", "WorktreeCreate"],
  ...["Elicitation", "ElicitationResult"],
];

/** Whether a hook can prevent the action that an event announces. Capital letters in its name do not matter. */
export function isGuard(event: string): boolean {
  return guards.some((name) => name.toLowerCase() === event.toLowerCase());
}

/** Returns the message that hooks of an event, or those of them that `which` describes, never run. For guards, it adds that nothing is blocked. */
export function neverRun(event: string, reason: string, which?: string): string {
  const hooks = `Hooks of ${event}${which === undefined ? "" : ` with ${which}`}`;
  return `${hooks} never run: ${reason}.${isGuard(event) ? " What they would block is not blocked." : ""}`;
}

// Matchers: whether one is valid, and whether it can match the name of a tool at all.

/** The problem of a matcher that is an invalid regular expression. */
export const invalidPattern = "it is an invalid regular expression";

/** The problem of a matcher that matches no tool. */
export const noTool = "it matches no tool; expected its name, or a regular expression for names";

/**
 * Whether a matcher certainly matches no tool. It is a permission rule, such as `Bash(rm *)`, or a text without operators other than `|`, and each of its
 * alternatives needs a character that no name of a tool contains. Other regular expressions may match one.
 */
export function isForNoTool(matcher: string): boolean {
  const rule = /^[\w-]+\(([^()[\]{}?\\]*)\)$/.exec(matcher)?.[1];
  const text = rule ?? (/^[\w\s,:/|-]*$/.test(matcher) ? matcher : "");
  return text.split("|").every((piece) => /[\s,:/](?!\*)|\w[\s:]\*$/.test(piece));
}

/** Compiles a regular expression; undefined for an invalid one. */
export function patternOf(text: string): RegExp | undefined {
  try {
    return new RegExp(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
