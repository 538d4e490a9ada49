/**
 * Settings: the handlers of each event, as the settings files of the home systems contain them.
 *
 * @module
 */
import * as z from "zod";
import { type Configured, type Definition, definitionOf, unmatched } from "../config.ts";
import type { Dialect } from "../dialect.ts";
import { eventNamed, type HookEvent, occurs, silenceOf } from "../events.ts";
import { hookNames } from "../../copilot/outputs.ts";
import { maybe } from "../../kit/answers.ts";
import { forEvent, invalidHooks, isGuard, neverRun, parseHooks } from "../../kit/settings.ts";
import { describeIssues, isObject, wildcard } from "../../../../src/core/kit.ts";

// The handlers in a settings file, and their schema.

/** The fields of every handler. Other fields, such as `statusMessage`, have no effect. */
export interface AnyHandler {
  /** Timeout in seconds. Default: see the dialect. A handler in the background has until the run ends. */
  readonly timeout?: number | undefined;
  /**
   * The calls that the handler is for, such as `Bash(git *)` or `Edit(src/*)`, however they are spelled. It also runs for a command that contains such a
   * command, and for a command that only a shell can evaluate: one with variables, or one that cannot be parsed. It looks into substitutions for the name of a
   * program, as in `Bash(rm *)`; with more than a name, as in `Bash(git push *)`, it runs for every command with a substitution. At events without a call it
   * does not run. Default: all calls.
   */
  readonly if?: string | undefined;
  /** Whether a failure blocks. Default: "continue". */
  readonly onFailure?: "continue" | "block" | undefined;
}

/** A handler that is a command. */
export interface CommandHook extends AnyHandler {
  /** The type. */
  readonly type: "command";
  /** The line for the shell; with `args`, the program. */
  readonly command: string;
  /** The arguments of the program. */
  readonly args?: readonly string[] | undefined;
  /** The shell. Default: `bash`, and `sh` if there is none. */
  readonly shell?: string | undefined;
  /** Runs in the background, and decides nothing. Default: false. */
  readonly async?: boolean | undefined;
  /** The same; with exit code 2 the model receives the reason. Default: false. */
  readonly asyncRewake?: boolean | undefined;
}

/** A handler that receives the input as a POST request. */
export interface HttpHook extends AnyHandler {
  /** The type. */
  readonly type: "http";
  /** The address. */
  readonly url: string;
  /** Headers; `$NAME` is a variable in `allowedEnvVars`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The variables that headers may contain. Default: none. */
  readonly allowedEnvVars?: readonly string[] | undefined;
}

/** A handler that asks a model, or an agent with tools. */
export interface PromptHook extends AnyHandler {
  /** The type. */
  readonly type: "prompt" | "agent";
  /** The prompt; `$ARGUMENTS` is the input as JSON. */
  readonly prompt: string;
}

/** A handler that calls a tool of an MCP server. */
export interface McpToolHook extends AnyHandler {
  /** The type. */
  readonly type: "mcp_tool";
  /** The server, by its name in the option `mcp`. */
  readonly server: string;
  /** The tool. */
  readonly tool: string;
  /** The input of the tool; `${tool_input.file_path}` in a text is a field of the input. */
  readonly input?: Readonly<Record<string, unknown>> | undefined;
}

/** A handler. */
export type HandlerConfig = CommandHook | HttpHook | PromptHook | McpToolHook;

const shared = {
  timeout: maybe(z.number().positive()),
  if: maybe(z.string()),
  onFailure: maybe(z.enum(["continue", "block"])),
};
const texts = z.record(z.string(), z.string());
const prompt = { prompt: z.string(), ...shared };
/** The schema of a handler. */
const handler = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("command"),
    command: z.string(),
    args: maybe(z.array(z.string())),
    shell: maybe(z.string()),
    async: maybe(z.boolean()),
    asyncRewake: maybe(z.boolean()),
    ...shared,
  }),
  z.object({
    type: z.literal("http"),
    url: z.string(),
    headers: maybe(texts),
    allowedEnvVars: maybe(z.array(z.string())),
    ...shared,
  }),
  z.object({ type: z.literal("prompt"), ...prompt }),
  z.object({ type: z.literal("agent"), ...prompt }),
  z.object({
    type: z.literal("mcp_tool"),
    server: z.string(),
    tool: z.string(),
    input: maybe(z.record(z.string(), z.unknown())),
    ...shared,
  }),
]);

// The settings, which are read from one or more files.

const matcher = z.object({
  matcher: maybe(z.string()),
  sequential: maybe(z.boolean()),
  hooks: z.array(z.looseObject({ type: z.string().default("command") })),
});
/** Matchers. Some files contain a handler in place of its matcher. */
const matchers = z.array(
  z.preprocess(
    (value) =>
      isObject(value) && !("hooks" in value) && ("command" in value || "type" in value)
        ? { ...value, hooks: [value] }
        : value,
    matcher,
  ),
);
const file = z.looseObject({
  hooks: maybe(z.record(z.string(), z.unknown())),
  disableAllHooks: maybe(z.boolean()),
  allowedHttpHookUrls: maybe(z.array(z.string())),
  httpHookAllowedEnvVars: maybe(z.array(z.string())),
  allowManagedHooksOnly: maybe(z.boolean()),
});

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
  /** The addresses that handlers of type `http` may post to, with `*` as a wildcard. The lists of several files are joined. Default: all; an empty list: none. */
  readonly allowedHttpHookUrls?: readonly string[] | undefined;
  /** The variables that headers of handlers of type `http` may contain, of those that a handler names. The lists of several files are joined. Default: all of them. */
  readonly httpHookAllowedEnvVars?: readonly string[] | undefined;
  /** In managed settings: hooks of other files never run. Default: false. */
  readonly allowManagedHooksOnly?: boolean | undefined;
}

/**
 * Joins several files: the hooks of those that may run, in the order of the files, managed ones first. A file that is not managed switches off no hook of a
 * managed one. The lists of what handlers of type `http` may do hold for all files. Throws a `TypeError` for an invalid file.
 */
export function joinFiles(files: readonly CommandSettings[], managed: readonly CommandSettings[]): CommandSettings {
  const all = [...managed, ...files];
  const { error } = z.array(file).safeParse(all);
  if (error) throw new TypeError(`Cannot use settings: ${describeIssues(error.issues)}`);
  all.forEach(expectInHooks);
  const isOff = (some: readonly CommandSettings[]) => some.some(({ disableAllHooks }) => disableAllHooks);
  const areOthersOff = isOff(all) || managed.some(({ allowManagedHooksOnly }) => allowManagedHooksOnly);
  const used = [...isOff(managed) ? [] : managed, ...areOthersOff ? [] : files];
  const events = new Set(used.flatMap(({ hooks }) => Object.keys(hooks ?? {})));
  return {
    hooks: Object.fromEntries([...events].map((event) => [event, used.flatMap(({ hooks }) => hooks?.[event] ?? [])])),
    allowedHttpHookUrls: joinedList(all.map(({ allowedHttpHookUrls }) => allowedHttpHookUrls)),
    httpHookAllowedEnvVars: joinedList(all.map(({ httpHookAllowedEnvVars }) => httpHookAllowedEnvVars)),
  };
}

/** Joins lists. Undefined if there is none. */
function joinedList(lists: readonly (readonly string[] | undefined)[]): readonly string[] | undefined {
  return lists.some((list) => list) ? lists.flatMap((list) => list ?? []) : undefined;
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
type HookOf = (handler: HandlerConfig) => Definition["hook"];

/** Reads settings. Throws a `TypeError` if the hooks of an event are invalid, or need a model, an agent or a server that is not given. */
export function readSettings(
  { hooks = {}, allowedHttpHookUrls }: CommandSettings,
  dialect: Dialect,
  hookOf: HookOf,
): Configured {
  const definitions = new Map<string, readonly Definition[]>();
  const silent: string[] = [];
  for (const [event, matcherGroups] of Object.entries(hooks)) {
    const reason = silenceOf(event);
    if (reason !== undefined) silent.push(reason);
    if (!occurs(event)) continue;
    const all = parseHooks(event, matchers, matcherGroups);
    for (const { type, onFailure, url } of all.flatMap(({ hooks }) => hooks)) {
      const isBlocked = type === "http" && !isAllowed(url, allowedHttpHookUrls);
      if (isKnown(type) && !isBlocked) continue;
      const subject = isBlocked ? `the address "${url}"` : `the type "${type}"`;
      const reason = isBlocked ? "it is not in allowedHttpHookUrls" : "it is unknown";
      if (onFailure === "block" && isGuard(event)) {
        const fault = isBlocked ? `an address that is not in allowedHttpHookUrls, "${url}"` : `unknown type "${type}"`;
        throw invalidHooks(event, `${fault} of handler, which has \`onFailure: "block"\``);
      }
      silent.push(neverRun(event, reason, subject));
    }
    const usable = all.map(({ hooks, ...rest }) => ({
      ...rest,
      hooks: hooks.filter(({ type, url }) => type !== "http" || isAllowed(url, allowedHttpHookUrls)),
    }));
    const read = usable.flatMap((each) => defined(each, event, dialect, hookOf));
    silent.push(...unmatched(event, read, dialect));
    definitions.set(event, read);
  }
  return { definitions, silent };
}

/** Whether settings allow handlers to post to an address. */
function isAllowed(url: unknown, allowed: readonly string[] | undefined): boolean {
  return allowed === undefined || typeof url !== "string" || allowed.some((pattern) => wildcard(pattern)(url));
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
  return hooks.filter(({ type }) => isKnown(type)).map((hookConfig) => {
    const config = parseHooks(event, handler, hookConfig);
    const { timeout, onFailure, ...same } = config;
    const hook = forEvent(event, () => hookOf(config));
    const { type: kind } = config;
    return definitionOf(
      { matcher, hook, kind, timeout, onFailure, sequential, same: JSON.stringify(same) },
      event,
      dialect,
    );
  });
}
