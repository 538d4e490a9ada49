/**
 * Settings: the handlers of each event, as the settings files of the home systems contain them.
 *
 * @module
 */
import * as z from "zod";
import { describeIssues } from "../../../src/core/kit.ts";
import { type Configured, type Definition, invalidHooks, unmatched } from "../claude_hooks/config/config.ts";
import type { Dialect } from "../claude_hooks/config/dialect.ts";
import { eventNamed, isGuard, neverRun, occurs, silenceOf } from "../claude_hooks/config/events.ts";
import type { HookEvent } from "../claude_hooks/config/input.ts";
import { matching } from "../claude_hooks/config/matcher.ts";
import { hookNames } from "../copilot_hooks/outputs.ts";
import { isObject, maybe } from "../kit/fields.ts";
import { handler, type HandlerConfig } from "./handler_config.ts";

const matcher = z.object({
  matcher: maybe(z.string()),
  sequential: maybe(z.boolean()),
  hooks: z.array(z.looseObject({ type: z.string().default("command") })),
});
/** Matchers. Some files contain a handler in place of its matcher. */
const matchers = z.array(
  z.preprocess(
    (given) =>
      isObject(given) && !("hooks" in given) && ("command" in given || "type" in given)
        ? { ...given, hooks: [given] }
        : given,
    matcher,
  ),
);
const file = z.looseObject({ hooks: maybe(z.record(z.string(), z.unknown())) });

/** Handlers, and the values of the event that they are for. */
export interface CommandMatcher {
  /** The tools, sources, agents or files that the handlers are for. Default: all. */
  readonly matcher?: string | undefined;
  /** The handlers. They run at the same time. */
  readonly hooks: readonly HandlerConfig[];
  /** Runs all handlers of the event in sequence. Default: false. */
  readonly sequential?: boolean | undefined;
}

/** The part of a settings file that is about hooks. */
export interface CommandSettings {
  /** Handlers by event. */
  readonly hooks?: Readonly<Record<string, readonly CommandMatcher[]>> | undefined;
  /** Switches all of them off. Default: false. */
  readonly disableAllHooks?: boolean | undefined;
}

/** Joins several files: all their hooks, in the order of the files, unless one file switches hooks off. Throws a `TypeError` for an invalid file. */
export function joinFiles(files: readonly CommandSettings[]): CommandSettings {
  const { error } = z.array(file).safeParse(files);
  if (error) throw new TypeError(`Cannot use settings: ${describeIssues(error.issues)}`);
  files.forEach(expectInHooks);
  const events = new Set(files.flatMap(({ hooks }) => Object.keys(hooks ?? {})));
  return {
    hooks: Object.fromEntries([...events].map((event) => [event, files.flatMap(({ hooks }) => hooks?.[event] ?? [])])),
    disableAllHooks: files.some(({ disableAllHooks }) => disableAllHooks),
  };
}

/** Throws a `TypeError` if hooks are at another place of a file than `hooks`: they would never run. */
function expectInHooks(file: CommandSettings): void {
  for (const [name, value] of Object.entries(file)) {
    if (name !== "hooks" && /^hooks?$/i.test(name) && isObject(value)) {
      throw new TypeError(`Cannot use settings: there is no field "${name}"; expected "hooks"`);
    }
    if (Array.isArray(value) && isEventName(name)) {
      throw new TypeError(
        `Cannot use settings: "${name}" is not in \`hooks\`; expected { hooks: { "${name}": [...] } }`,
      );
    }
  }
}

/** Whether a name is that of an event of any system. Capital letters do not matter. */
function isEventName(name: string): boolean {
  return eventNamed(name) !== undefined || hookNames.some((hook) => hook.toLowerCase() === `on${name.toLowerCase()}`);
}

/** Creates the hook of a handler. Throws a `TypeError` for a handler that cannot run here. */
export type HookOf = (handler: HandlerConfig) => Definition["hook"];

/** Reads settings. Throws a `TypeError` if the hooks of an event are invalid, or need a model, an agent or a server that is not given. */
export function readSettings(
  { hooks = {}, disableAllHooks = false }: CommandSettings,
  dialect: Dialect,
  hookOf: HookOf,
): Configured {
  const definitions = new Map<string, readonly Definition[]>();
  const silent: string[] = [];
  for (const [event, given] of disableAllHooks ? [] : Object.entries(hooks)) {
    const reason = silenceOf(event);
    if (reason !== undefined) silent.push(reason);
    if (!occurs(event)) continue;
    const all = parse(event, matchers, given);
    for (const { type, onFailure } of all.flatMap(({ hooks }) => hooks).filter(({ type }) => !isKnown(type))) {
      if (onFailure === "block" && isGuard(event)) {
        throw invalidHooks(event, `unknown type "${type}" of handler, which has \`onFailure: "block"\``);
      }
      silent.push(neverRun(event, "it is unknown", `the type "${type}"`));
    }
    const read = all.flatMap((each) => defined(each, event, dialect, hookOf));
    silent.push(...unmatched(event, read, dialect));
    definitions.set(event, read);
  }
  return { definitions, silent };
}

function isKnown(type: string): boolean {
  return handler.options.some(({ shape }) => shape.type.value === type);
}

function defined(
  { matcher, sequential, hooks }: z.output<typeof matchers>[number],
  event: HookEvent,
  dialect: Dialect,
  hookOf: HookOf,
): Definition[] {
  return hooks.filter(({ type }) => isKnown(type)).map((given) => {
    const config = parse(event, handler, given);
    const { timeout, onFailure, ...same } = config;
    const most = dialect.timeouts[event] ?? dialect.timeouts[config.type];
    return {
      matches: matching(matcher, event, dialect),
      matcher: matcher ?? "",
      hook: make(event, () => hookOf(config)),
      timeout: (timeout ?? most) * 1_000,
      blocks: onFailure === "block",
      blocksLate: false,
      sequential: dialect.sequential && sequential === true,
      same: JSON.stringify(same),
    };
  });
}

/** Calls `create`. Adds the event to its `TypeError`. */
export function make<T>(event: string, create: () => T): T {
  try {
    return create();
  } catch (error) {
    throw error instanceof TypeError ? invalidHooks(event, error.message) : error;
  }
}

/** Parses the hooks of an event. Throws a `TypeError` if they are invalid. */
export function parse<S extends z.core.$ZodType>(event: string, schema: S, given: unknown): z.output<S> {
  const { success, data, error } = z.safeParse(schema, given);
  if (!success) throw invalidHooks(event, z.prettifyError(error));
  return data;
}
