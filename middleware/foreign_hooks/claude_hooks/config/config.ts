/**
 * The configuration: the hooks of each event, as users of the home systems write it.
 *
 * @module
 */
import { unknownMembers } from "../../kit/fields.ts";
import type { Dialect } from "./dialect.ts";
import { neverRun, silenceOf } from "./events.ts";
import type { HookEvent, HookInput, InputOf, UnsupportedEvent } from "./input.ts";
import { matcherProblem, type Matches, matching } from "./matcher.ts";
import type { HookOutput } from "./output.ts";

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

function defined(given: HookCallbackMatcher<never>, event: HookEvent, dialect: Dialect): Definition[] {
  const { hooks } = given;
  const matcher = given.matcher ?? undefined; // some configurations contain null
  const timeout = given.timeout ?? dialect.timeouts[event] ?? dialect.timeouts.callback;
  const onFailure = given.onFailure ?? "continue";
  if (!Array.isArray(hooks) || hooks.some((hook) => typeof hook !== "function")) {
    throw invalidHooks(event, "expected `hooks`, a list of functions");
  }
  if (matcher !== undefined && typeof matcher !== "string") throw invalidHooks(event, "expected a string as `matcher`");
  if (!(timeout > 0)) throw invalidHooks(event, `expected a \`timeout\` of more than 0 seconds, got ${timeout}`);
  if (!["continue", "block"].includes(onFailure)) {
    throw invalidHooks(event, `expected "continue" or "block" as \`onFailure\`, got ${JSON.stringify(onFailure)}`);
  }
  return hooks.map((hook: HookCallback<never>) => ({
    matches: matching(matcher, event, dialect),
    matcher: matcher ?? "",
    hook,
    timeout: timeout * 1_000,
    blocks: onFailure === "block",
    blocksLate: dialect.lateBlocks.includes(event),
    sequential: dialect.sequential && given.sequential === true,
  }));
}

/** Creates the error for a configuration that cannot be read. */
export function invalidHooks(event: string, reason: string): TypeError {
  return new TypeError(`Cannot use the hooks of ${event}: ${reason}`);
}
