/**
 * The configuration: the hooks of each event, as users of the home systems write it.
 *
 * @module
 */
import type { Decision, Dialect, HandlerKind } from "./dialect.ts";
import {
  events,
  type HookEvent,
  type HookInput,
  type InputOf,
  occurs,
  silenceOf,
  type UnsupportedEvent,
} from "./events.ts";
import { unknownMembers } from "../kit/answers.ts";
import { invalidHooks, invalidPattern, isForNoTool, neverRun, noTool, patternOf } from "../kit/settings.ts";

// The outputs of hooks, as the home systems write them.

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
  /** SessionStart, UserPromptSubmit: the title of the session, which later inputs contain. Clients receive it as `data` with the name "session_title". */
  readonly sessionTitle?: string;
  /** WorktreeCreate: the path of the worktree. */
  readonly worktreePath?: string;
  /** MessageDisplay: the text that the person sees instead. */
  readonly displayContent?: string;
  /** Elicitation, ElicitationResult: the answer that the server receives. */
  readonly action?: "accept" | "decline" | "cancel";
  /** Elicitation, ElicitationResult: the values of the form, for "accept". */
  readonly content?: Readonly<Record<string, unknown>>;
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

// Matchers: the tools, sources, agents or files that a hook is for.

/** Tests the value that an event is about. An event without a value matches every hook. */
type Matches = (value: string | undefined) => boolean;

/** Compiles a matcher for the hooks of an event. */
function matching(matcher: string | undefined, event: string, { nameList, malformed }: Dialect): Matches {
  if (matcher === undefined || isAll(matcher)) return () => true;
  const names = namesIn(matcher, event, nameList);
  const pattern = names ? undefined : patternOf(matcher);
  return (value) => {
    if (value === undefined) return true;
    if (names) return names.has(value);
    return pattern ? pattern.test(value) : malformed === "itself" && value === matcher;
  };
}

/** Says why a matcher matches no tool and no value; undefined if it may match one. */
function matcherProblem(matcher: string, event: string, { nameList, malformed }: Dialect): string | undefined {
  const matches = occurs(event) ? events[event].matches : undefined;
  if (matches === undefined || isAll(matcher)) return undefined;
  const isForTools = matches === "tool_name";
  const names = namesIn(matcher, event, nameList);
  if (names) return isForTools && [...names].every(isForNoTool) ? noTool : undefined;
  if (!patternOf(matcher)) {
    const isText = malformed === "itself" && !isForTools; // such as the name of a file
    return isText ? undefined : invalidPattern;
  }
  return isForTools && isForNoTool(matcher) ? noTool : undefined;
}

function isAll(matcher: string): boolean {
  return matcher === "" || matcher === "*";
}

/** Returns the names in a list of names; undefined if the matcher is a regular expression. */
function namesIn(
  matcher: string,
  event: string,
  { tools, values, other }: Dialect["nameList"],
): ReadonlySet<string> | undefined {
  const row = occurs(event) ? events[event] : undefined;
  const list = row?.matches === "tool_name" ? tools : (occurs(event) && other[event]) || values;
  if (!list?.test(matcher)) return undefined;
  return new Set(matcher.split(/[|,]/).map((name) => name.trim()));
}

// Reads a configuration of callbacks: its hooks by event, and the parts of it that never run.

/** A hook: receives a copy of the input of an event and returns its output. `toolUseID` is the id of the call, if the event is about one. */
export type HookCallback<I = HookInput> = (
  input: I,
  toolUseID: string | undefined,
  options: { signal: AbortSignal },
) => HookAnswer | Promise<HookAnswer>;

/** The answer of a hook. Nothing means no opinion. */
export type HookAnswer = HookOutput | null | undefined | void;

/** Hooks, and the values of the event that they are for. */
export interface HookCallbackMatcher<I = HookInput> {
  /** The tools, sources, agents or files that the hooks are for. Default: all. */
  readonly matcher?: string | undefined;
  /** The hooks. They run at the same time. */
  readonly hooks: readonly HookCallback<I>[];
  /** Timeout of each hook, in seconds. Default: see the dialect. */
  readonly timeout?: number | undefined;
  /** Whether a failed hook blocks. Default: "continue". */
  readonly onFailure?: "continue" | "block" | undefined;
  /** Runs all hooks of the event in sequence; each receives the changes of the hooks before it. Default: false. */
  readonly sequential?: boolean | undefined;
}

/** Hooks by event. Hooks of events that do not occur here are accepted and never run; a `warning` reports them. */
export type HookConfig =
  & { readonly [E in HookEvent]?: readonly HookCallbackMatcher<InputOf<E>>[] | undefined }
  & { readonly [E in UnsupportedEvent]?: readonly HookCallbackMatcher<never>[] | undefined };

/** One hook of one event. */
export interface Definition {
  readonly matches: Matches;
  /** The matcher, as it was written. */
  readonly matcher: string;
  readonly hook: (input: never, toolUseID: string | undefined, options: { signal: AbortSignal }) => unknown;
  /** Milliseconds. */
  readonly timeout: number;
  /** Whether a failure of the hook blocks. */
  readonly blocks: boolean;
  /** Whether a timeout of the hook blocks. */
  readonly blocksLate: boolean;
  readonly sequential: boolean;
  /** The identity of a hook in a file: of several equal ones, one runs. Default: it equals no other. */
  readonly same?: string;
}

/** The hooks of each event. */
export type Definitions = ReadonlyMap<string, readonly Definition[]>;

/** A configuration that was read. */
export interface Configured {
  readonly definitions: Definitions;
  /** One sentence for each part of the configuration that never runs. */
  readonly silent: readonly string[];
}

/** Reads a configuration. Throws a `TypeError` if the hooks of an event are not a list of matchers with functions. */
export function configured(config: HookConfig, dialect: Dialect): Configured {
  if (typeof config !== "object" || config === null) {
    throw new TypeError("Cannot use hooks: expected an object with a list of matchers for each event");
  }
  const events = Object.entries(config) as [HookEvent, HookConfig[HookEvent]][]; // unknown events end up in `silent`
  const definitions = new Map(events.map(([event, matchers = []]) => {
    if (!Array.isArray(matchers)) throw invalidHooks(event, "expected a list of matchers");
    return [
      event,
      matchers.flatMap((matcher: HookCallbackMatcher<never>) => defined(matcher ?? {}, event, dialect)),
    ] as const;
  }));
  const silent = events.flatMap(([event]) => definitions.get(event)?.length ? silenceOf(event) ?? [] : []);
  const withoutMatch = [...definitions].flatMap(([event, all]) => unmatched(event, all, dialect));
  const unknown = events.flatMap(([event, matchers]) => (matchers ?? []).flatMap((each) => unknownField(event, each)));
  return { definitions, silent: [...silent, ...withoutMatch, ...unknown] };
}

/** Returns one sentence if a matcher has unknown fields: one may be a misspelt `matcher`, without which its hooks are for everything. */
function unknownField(event: string, matcher: object): string[] {
  const known = ["matcher", "hooks", "timeout", "onFailure", "sequential"];
  const unknown = unknownMembers(matcher, known);
  return unknown === undefined ? [] : [`A matcher of ${event} has ${unknown}; expected ${known.join(", ")}.`];
}

/** Returns one sentence for each matcher of an event that matches nothing. */
export function unmatched(event: string, definitions: readonly Definition[], dialect: Dialect): string[] {
  const matchers = new Set(definitions.map(({ matcher }) => matcher));
  return [...matchers].flatMap((matcher) => {
    const problem = matcherProblem(matcher, event, dialect);
    return problem === undefined ? [] : neverRun(event, problem, `the matcher "${matcher}"`);
  });
}

function defined(matcherConfig: HookCallbackMatcher<never>, event: HookEvent, dialect: Dialect): Definition[] {
  const { hooks, timeout, sequential } = matcherConfig;
  const matcher = matcherConfig.matcher ?? undefined; // some configurations contain null
  const onFailure = matcherConfig.onFailure ?? "continue";
  if (!Array.isArray(hooks) || hooks.some((hook) => typeof hook !== "function")) {
    throw invalidHooks(event, "expected `hooks`, a list of functions");
  }
  if (matcher !== undefined && typeof matcher !== "string") throw invalidHooks(event, "expected a string as `matcher`");
  if (!((timeout ?? 1) > 0)) throw invalidHooks(event, `expected a \`timeout\` of more than 0 seconds, got ${timeout}`);
  if (!["continue", "block"].includes(onFailure)) {
    throw invalidHooks(event, `expected "continue" or "block" as \`onFailure\`, got ${JSON.stringify(onFailure)}`);
  }
  return hooks.map((hook: HookCallback<never>) =>
    definitionOf({ matcher, hook, timeout, onFailure, sequential }, event, dialect)
  );
}

/** A hook as its configuration has it. */
interface ConfiguredHook extends Omit<HookCallbackMatcher<never>, "hooks"> {
  readonly hook: Definition["hook"];
  /** The kind of its handler. Default: a callback. */
  readonly kind?: HandlerKind;
  readonly same?: string;
}

/** Applies the defaults of the dialect to a hook. */
export function definitionOf(
  { matcher, hook, kind = "callback", timeout, onFailure, sequential, same }: ConfiguredHook,
  event: HookEvent,
  dialect: Dialect,
): Definition {
  return {
    matches: matching(matcher, event, dialect),
    matcher: matcher ?? "",
    hook,
    timeout: (timeout ?? dialect.timeouts[event] ?? dialect.timeouts[kind]) * 1_000,
    blocks: onFailure === "block",
    blocksLate: kind === "callback" && dialect.lateBlocks.includes(event),
    sequential: dialect.sequential && sequential === true,
    ...(same !== undefined && { same }),
  };
}
