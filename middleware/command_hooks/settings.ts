/**
 * Settings: which commands there are for which event, as the settings files of the other systems say it.
 *
 * @module
 */
import * as z from "zod";
import { type Definition, type Definitions, refusal } from "../claude_hooks/config.ts";
import type { Dialect } from "../claude_hooks/dialect.ts";
import type { HookEvent } from "../claude_hooks/input.ts";
import { matching } from "../claude_hooks/matcher.ts";

const command = z.object({
  type: z.literal("command"),
  command: z.string(),
  args: z.array(z.string()).optional(),
  shell: z.string().optional(),
  timeout: z.number().positive().optional(),
  async: z.boolean().optional(),
  asyncRewake: z.boolean().optional(),
  if: z.string().optional(),
  onFailure: z.enum(["continue", "block"]).optional(),
});
const matchers = z.array(z.object({
  matcher: z.string().optional(),
  sequential: z.boolean().optional(),
  hooks: z.array(command),
}));

/** A command that is a hook. What else settings say of it, such as `statusMessage`, has no meaning here. */
export interface CommandHook {
  /** What it is. Settings may have others, which are no commands: those are refused. */
  readonly type: "command";
  /** What the shell runs; with `args`, the program itself. */
  readonly command: string;
  /** What the program is given, where there is no shell between. */
  readonly args?: readonly string[] | undefined;
  /** The shell. Default: `bash`, and `sh` where there is none. */
  readonly shell?: string | undefined;
  /** Seconds that it has; one that goes on by itself has until the run ends. Default: what the dialect says of commands. */
  readonly timeout?: number | undefined;
  /** Nothing waits for it, and it decides nothing. Default: false. */
  readonly async?: boolean | undefined;
  /** The same, and where it exits with 2 the model is told why. Default: false. */
  readonly asyncRewake?: boolean | undefined;
  /** The calls that it is for, such as `Bash(git *)`. At events that are no calls it does not run then. Default: all. */
  readonly if?: string | undefined;
  /** What it means where it fails: nothing, or that it blocks. Default: "continue". */
  readonly onFailure?: "continue" | "block" | undefined;
}

/** Commands, and what they are for. */
export interface CommandMatcher {
  /** The tools, sources, agents or files that they are for. Default: all. */
  readonly matcher?: string | undefined;
  /** The commands. They run at the same time. */
  readonly hooks: readonly CommandHook[];
  /** Has all of the event run one after another. Default: false. */
  readonly sequential?: boolean | undefined;
}

/** What a settings file says of hooks. */
export interface CommandSettings {
  /** Commands by event. */
  readonly hooks?: Readonly<Record<string, readonly CommandMatcher[]>> | undefined;
  /** Whether none of them runs. Default: false. */
  readonly disableAllHooks?: boolean | undefined;
}

/** Makes a hook of a command. */
export type HookOf = (command: CommandHook) => Definition["hook"];

/** Reads settings. Throws a `TypeError` where the hooks of an event are not as they should be, or are no commands. */
export function definitionsOf(
  { hooks = {}, disableAllHooks = false }: CommandSettings,
  dialect: Dialect,
  hookOf: HookOf,
): Definitions {
  if (disableAllHooks) return new Map();
  return new Map(
    Object.entries(hooks).map(([event, given]) => {
      const parsed = matchers.safeParse(given);
      if (!parsed.success) throw refusal(event, z.prettifyError(parsed.error));
      return [event, parsed.data.flatMap((matcher) => defined(matcher, event as HookEvent, dialect, hookOf))]; // others are never asked for
    }),
  );
}

function defined(
  { matcher, sequential = false, hooks }: CommandMatcher,
  event: HookEvent,
  dialect: Dialect,
  hookOf: HookOf,
): Definition[] {
  const most = dialect.timeouts[event] ?? dialect.timeouts.command;
  return hooks.map((command) => ({
    matches: matching(matcher, event, dialect),
    hook: hookOf(command),
    timeout: (command.timeout ?? most) * 1_000,
    blocks: command.onFailure === "block",
    sequential: dialect.sequential && sequential,
    same: JSON.stringify([command.command, command.args, command.shell, command.if]),
  }));
}
