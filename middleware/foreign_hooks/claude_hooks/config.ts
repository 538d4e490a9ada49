/**
 * The configuration: which hooks there are for which event, as users of the other systems write it.
 *
 * @module
 */
import type { Dialect } from "./dialect.ts";
import { silenceOf } from "./events.ts";
import type { HookEvent, HookInput, InputOf, UnheardEvent } from "./input.ts";
import { type Matches, matching } from "./matcher.ts";
import type { HookOutput } from "./output.ts";

/** A hook: it is told of an event, by a copy of its own, and says what it wants. `toolUseID` is the call's id where there is a call. */
export type HookCallback<I = HookInput> = (
  input: I,
  toolUseID: string | undefined,
  options: { signal: AbortSignal },
) => HookAnswer | Promise<HookAnswer>;

/** What a hook gives back. Nothing is no opinion. */
export type HookAnswer = HookOutput | null | undefined | void;

/** Hooks, and what they are for. */
export interface HookMatcher<I = HookInput> {
  /** The tools, sources, agents or files that the hooks are for. Default: all. */
  readonly matcher?: string | undefined;
  /** The hooks. They are asked at the same time. */
  readonly hooks: readonly HookCallback<I>[];
  /** Seconds that each of them has. Default: what the dialect says. */
  readonly timeout?: number | undefined;
  /** What it means where one of them fails: nothing, or that it blocks. Default: "continue". */
  readonly onFailure?: "continue" | "block" | undefined;
  /** Has all hooks of the event asked one after another, each told what those before it changed. Default: false. */
  readonly sequential?: boolean | undefined;
}

/** Hooks by event. Those of events that cannot happen here are taken, and never asked: a `warning` says so. */
export type HookConfig =
  & { readonly [E in HookEvent]?: readonly HookMatcher<InputOf<E>>[] | undefined }
  & { readonly [E in UnheardEvent]?: readonly HookMatcher<never>[] | undefined };

/** One hook of one event. */
export interface Definition {
  /** Whether it is for what the event is about. */
  readonly matches: Matches;
  /** The hook. */
  readonly hook: (input: never, toolUseID: string | undefined, options: { signal: AbortSignal }) => unknown;
  /** Milliseconds that it has. */
  readonly timeout: number;
  /** Whether its failure blocks. */
  readonly blocks: boolean;
  /** Whether those of its event go one after another. */
  readonly sequential: boolean;
  /** What it is: of several that are the same, one is asked. Default: it is like no other. */
  readonly same?: string;
}

/** The hooks of every event that has any. */
export type Definitions = ReadonlyMap<string, readonly Definition[]>;

/** A configuration that was read. */
export interface Configured {
  /** Its hooks. */
  readonly definitions: Definitions;
  /** What of it is never asked, and why: a sentence for each. */
  readonly silent: readonly string[];
}

/** Reads a configuration. Throws a `TypeError` where it is none, or the hooks of an event are no list of matchers with hooks. */
export function configured(config: HookConfig, dialect: Dialect): Configured {
  if (typeof config !== "object" || config === null) {
    throw new TypeError("Cannot use hooks: expected an object with a list of matchers for each event");
  }
  const events = Object.entries(config) as [HookEvent, HookConfig[HookEvent]][]; // of others, `silent` says so
  const definitions = new Map(events.map(([event, matchers = []]) => {
    if (!Array.isArray(matchers)) throw refusal(event, "expected a list of matchers");
    return [event, matchers.flatMap((matcher: HookMatcher<never>) => defined(matcher ?? {}, event, dialect))] as const;
  }));
  const silent = events.flatMap(([event]) => definitions.get(event)?.length ? silenceOf(event) ?? [] : []);
  return { definitions, silent };
}

function defined(given: HookMatcher<never>, event: HookEvent, dialect: Dialect): Definition[] {
  const { hooks } = given;
  const matcher = given.matcher ?? undefined; // some write null
  const timeout = given.timeout ?? dialect.timeouts[event] ?? dialect.timeouts.callback;
  const onFailure = given.onFailure ?? "continue";
  if (!Array.isArray(hooks) || hooks.some((hook) => typeof hook !== "function")) {
    throw refusal(event, "expected `hooks`, a list of functions");
  }
  if (matcher !== undefined && typeof matcher !== "string") throw refusal(event, "expected a text as `matcher`");
  if (!(timeout > 0)) throw refusal(event, "expected a `timeout` of more than 0 seconds");
  if (!["continue", "block"].includes(onFailure)) throw refusal(event, 'expected "continue" or "block" as `onFailure`');
  return hooks.map((hook: HookCallback<never>) => ({
    matches: matching(matcher, event, dialect),
    hook,
    timeout: timeout * 1_000,
    blocks: onFailure === "block",
    sequential: dialect.sequential && given.sequential === true,
  }));
}

/** The error for a configuration that cannot be read. */
export function refusal(event: string, why: string): TypeError {
  return new TypeError(`Cannot use the hooks of ${event}: ${why}`);
}
