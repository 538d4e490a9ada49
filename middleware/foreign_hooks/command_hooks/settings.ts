/**
 * Settings: which commands there are for which event, as the settings files of the other systems say it.
 *
 * @module
 */
import * as z from "zod";
import { describeIssues } from "../../../src/core/kit.ts";
import { type Configured, type Definition, refusal } from "../claude_hooks/config.ts";
import type { Dialect } from "../claude_hooks/dialect.ts";
import { guarded } from "../claude_hooks/dispatch.ts";
import { silenceOf } from "../claude_hooks/events.ts";
import type { HookEvent } from "../claude_hooks/input.ts";
import { matching } from "../claude_hooks/matcher.ts";

/** What may be there; null is not there. */
export const maybe = <S extends z.ZodType>(schema: S) => schema.nullish().transform((given) => given ?? undefined);

const file = z.looseObject({ hooks: maybe(z.record(z.string(), z.unknown())) });
const onFailure = maybe(z.enum(["continue", "block"]));
const command = z.object({
  type: z.literal("command").default("command"),
  command: z.string(),
  args: maybe(z.array(z.string())),
  shell: maybe(z.string()),
  timeout: maybe(z.number().positive()),
  async: maybe(z.boolean()),
  asyncRewake: maybe(z.boolean()),
  if: maybe(z.string()),
  onFailure,
});
const matcher = z.object({
  matcher: maybe(z.string()),
  sequential: maybe(z.boolean()),
  hooks: z.array(z.looseObject({ type: z.string().default("command"), onFailure })),
});
/** Matchers; where one would be, some write its hook. */
const matchers = z.array(z.preprocess((given) => isHook(given) ? { ...given, hooks: [given] } : given, matcher));

function isHook(given: unknown): given is object {
  return typeof given === "object" && given !== null && "command" in given && !("hooks" in given);
}

/** A command that is a hook. What else settings say of it, such as `statusMessage`, has no meaning here. */
export interface CommandHook {
  /** What it is. Settings may have others: those are never asked, and a `warning` says so. */
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
  /**
   * The calls that it is for, such as `Bash(git *)`, also where such a command is one of several, or within another. What another program runs, such as
   * `sudo`, is not seen: a guard has no `if`. At events that are no calls it does not run then. Default: all.
   */
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

/** Several files as one: all their hooks, each event's in the order of the files, unless one switches them off. Throws a `TypeError` where one is none. */
export function joined(files: readonly CommandSettings[]): CommandSettings {
  const { error } = z.array(file).safeParse(files);
  if (error) throw new TypeError(`Cannot use settings: ${describeIssues(error.issues)}`);
  const events = new Set(files.flatMap(({ hooks }) => Object.keys(hooks ?? {})));
  return {
    hooks: Object.fromEntries([...events].map((event) => [event, files.flatMap(({ hooks }) => hooks?.[event] ?? [])])),
    disableAllHooks: files.some(({ disableAllHooks }) => disableAllHooks),
  };
}

/** Makes a hook of a command. */
export type HookOf = (command: CommandHook) => Definition["hook"];

/** Reads settings. Throws a `TypeError` where the hooks of an event are not as they should be. */
export function configured(
  { hooks = {}, disableAllHooks = false }: CommandSettings,
  dialect: Dialect,
  hookOf: HookOf,
): Configured {
  const definitions = new Map<string, readonly Definition[]>();
  const silent: string[] = [];
  for (const [event, given] of disableAllHooks ? [] : Object.entries(hooks)) {
    const silence = silenceOf(event);
    if (silence !== undefined) silent.push(silence);
    else {
      const { commands, others } = commandsOf(event, given);
      if (others.size > 0) silent.push(neverAsked(event, ` that are no commands: ${[...others].join(", ")}`));
      definitions.set(event, commands.map((command) => defined(command, event as HookEvent, dialect, hookOf))); // it is none of the others
    }
  }
  return { definitions, silent };
}

/** Says that hooks of an event are never asked, and what that means where they are guards. */
export function neverAsked(event: string, why: string): string {
  const gap = isGuarded(event) ? " What they would block is not blocked." : "";
  return `Hooks of ${event} are never asked${why}.${gap}`;
}

/** Whether hooks may block what an event is about, however the event is capitalized. */
function isGuarded(event: string): boolean {
  return guarded.some((each) => each.toLowerCase() === event.toLowerCase());
}

/** A command, and what it is for. */
interface Command extends Omit<CommandMatcher, "hooks"> {
  readonly command: CommandHook;
}

/** The commands of an event, and the types of its other hooks: of those, nobody can ask one whose failure is to block. */
function commandsOf(event: string, given: unknown) {
  const commands: Command[] = [];
  const others = new Set<string>();
  for (const { hooks, ...matcher } of read(event, matchers, given)) {
    for (const hook of hooks) {
      const { type, onFailure } = hook;
      if (type === "command") commands.push({ ...matcher, command: read(event, command, hook) });
      else if (onFailure === "block" && isGuarded(event)) {
        throw refusal(event, `nothing asks a hook of the type "${type}" here, and its failure is to block`);
      } else others.add(type);
    }
  }
  return { commands, others };
}

function read<S extends z.ZodType>(event: string, schema: S, given: unknown): z.output<S> {
  const { success, data, error } = schema.safeParse(given);
  if (!success) throw refusal(event, z.prettifyError(error));
  return data;
}

function defined(
  { matcher, sequential = false, command }: Command,
  event: HookEvent,
  dialect: Dialect,
  hookOf: HookOf,
): Definition {
  const most = dialect.timeouts[event] ?? dialect.timeouts.command;
  return {
    matches: matching(matcher, event, dialect),
    hook: hookOf(command),
    timeout: (command.timeout ?? most) * 1_000,
    blocks: command.onFailure === "block",
    sequential: dialect.sequential && sequential,
    same: JSON.stringify([command.command, command.args, command.shell, command.if]),
  };
}
