/**
 * Policies of points: which keys a hook may change by `next()` at each point, how a change becomes the context of the inner layers, and which answers are valid.
 *
 * @module
 */
import { callSafely } from "./events.ts";
import { isThenable } from "./lib/cancellation.ts";
import { expectJson, ignoreRejections, typeOf } from "./lib/json.ts";
import { expectType } from "./lib/options.ts";
import type {
  CompactChange,
  InputChange,
  ModelChange,
  PromptChange,
  SessionChange,
  SubagentChange,
  ToolChange,
  TurnChange,
} from "./points.ts";
import type { Change, Run, Scope } from "./scope.ts";
import { expectMessages } from "./transcript.ts";
import type { Emit, Point } from "../protocol/event.ts";

/** One hook's answer, as a policy sees it. `E` are the engine's values of this onion. */
export interface HookAnswer<C, R, E> {
  /** The name of the middleware. */
  readonly name: string;
  /** The context that the hook received. */
  readonly ctx: C;
  /** The engine's values of this onion, which no hook can reach. */
  readonly locals: E;
  /** The value that the hook returned. */
  readonly returned: R;
  /** True if the hook called `next()`. */
  readonly called: boolean;
  /** The result of its last `next()` that did not throw. */
  readonly below: R | undefined;
  /** Runs the inner layers, for a hook that did not. After a failure, it returns the result of the hook's `next()`, if it called it. */
  readonly runInner: () => Promise<R>;
}

/** The failure of one hook, as a policy sees it. */
export interface HookFailure<C, R, E> extends Omit<HookAnswer<C, R, E>, "returned" | "called" | "below"> {
  /** The error that the hook threw. */
  readonly error: unknown;
}

/** The differences between one point and the others: data for the one fold. */
export interface PointPolicy<C, D, R, E> {
  /** The point's name, for errors. */
  readonly point: Point;
  /** The innermost function. */
  readonly core: (ctx: C, locals: E) => Promise<R>;
  /** Returns the context of a second `next()`, after the first one has settled. Undefined, as by default, if it may not be called. */
  readonly retry?: (ctx: C, locals: E) => C | undefined;
  /** Returns advice for the error about a second `next()`. */
  readonly hint?: (ctx: C) => string;
  /** True if a hook that does not await `next()` always returns before the core settles. Otherwise the fold delays the core, to notice such a hook. Default: false. */
  readonly late?: boolean;
  /** True if hooks return nothing. Default: false. */
  readonly silent?: boolean;
  /** Returns the context of the inner layers. */
  readonly change: (ctx: C, change: D, name: string, locals: E) => C;
  /** Called before each hook with the name of its middleware. */
  readonly enter?: (name: string, locals: E) => void;
  /** Replaces an answer that is not the result of the inner layers. Default: the answer stands. */
  readonly finalize?: (answer: HookAnswer<C, R, E>) => R | Promise<R>;
  /** Returns an answer in place of a hook that threw. Default: the error is thrown. */
  readonly rescue?: (failure: HookFailure<C, R, E>) => Promise<R>;
}

/** Completes the context of the inner layers after a change. */
export type Derive<C, E> = (inner: C, outer: C, locals: E, name: string) => C;

/** The data of a policy that a point adds. */
export interface PolicyOptions<C, D, R, E> extends Omit<PointPolicy<C, D, R, E>, "point" | "change"> {
  /** Completes the context of the inner layers. Default: the context with the change. */
  readonly derive?: Derive<C, E>;
}

type Keys<D extends Change> = readonly (keyof D & string)[];

/** The keys of its context that a hook may change by `next()`, besides `signal` and `emit`. At the other points there are none. */
const changeableKeys: { readonly [P in Point]?: readonly string[] } = {
  session: ["settings", "context"] satisfies Keys<SessionChange>,
  input: ["messages", "context"] satisfies Keys<InputChange>,
  prompt: ["prompt", "context"] satisfies Keys<PromptChange>,
  turn: ["context", "transcript"] satisfies Keys<TurnChange>,
  model: ["request"] satisfies Keys<ModelChange>,
  tool: ["input", "name"] satisfies Keys<ToolChange>,
  subagent: ["prompt", "settings"] satisfies Keys<SubagentChange>,
  compact: ["transcript", "instructions"] satisfies Keys<CompactChange>,
};

/** Creates a policy under which `signal`, `emit` and the keys of the point may change. Undefined values are ignored, other keys are rejected by name. */
export function policyOf<C extends Scope, D extends Change, R, E>(
  point: Point,
  { derive, finalize, ...policy }: PolicyOptions<C, D, R, E>,
): PointPolicy<C, D, R, E> {
  const allowed = ["signal", "emit", ...changeableKeys[point] ?? []];
  return {
    point,
    change(ctx, change, name, locals) {
      const stray = Object.keys(change).find((key) => !allowed.includes(key));
      if (stray !== undefined) {
        throw new TypeError(`Cannot change "${stray}" at ${point} in "${name}": expected ${allowed.join(", ")}`);
      }
      expectFields(`Cannot use the change of "${name}" at ${point}`, change, ctx);
      const filtered = change.emit ? { ...change, emit: reportingFilter(change.emit, ctx.run) } : change;
      const inner = merged<Scope>(ctx, filtered) as C; // the keys were checked: they are the context's
      return derive ? derive(inner, ctx, locals, name) : inner;
    },
    finalize(answer) {
      if (point !== "approval") { // the engine checks the decision of all guards
        expectFields(`Cannot use the answer of "${answer.name}" at ${point}`, answer.returned, answer.below);
      }
      return finalize ? finalize(answer) : answer.returned;
    },
    ...policy,
  };
}

/**
 * Returns the filter. If an `async` function rejects, the error is reported: its callers emit events and await nothing. Not covered is a filter that is no such
 * function and returns a promise, also one that a bundler made of an `async` function: its rejection is unhandled. It stays as it is, since deltas pass many
 * filters.
 */
export function reportingFilter(emit: Emit, { report }: Run): Emit {
  return typeOf(emit) === "AsyncFunction" ? (event) => callSafely(() => emit(event), report) : emit;
}

/** Fields whose values are not JSON. */
const notJson: readonly string[] = ["signal", "emit", "model", "tools"];
/** Fields whose values are checked where they are used. */
const unchecked: readonly string[] = ["input", "output", "error"];
/** The types of fields, as `typeOf()` returns them. */
const fieldTypes: { readonly [key: string]: string } = {
  session: "String",
  text: "String",
  context: "Array",
  emit: "Function",
};

/**
 * Throws a `TypeError` that starts with `operation` if `changed` or a field is a promise, has the wrong type, is not JSON, or is an invalid
 * message. Values and items that were in `before` are not checked again: a request may have thousands of messages.
 */
function expectFields(operation: string, changed: unknown, before: unknown): void {
  if (typeof changed !== "object" || changed === null) return;
  expectNoPromise(operation, changed);
  const known = Object(before);
  for (const [key, value] of Object.entries(changed)) {
    const earlier = known[key];
    if (value === undefined || value === earlier || unchecked.includes(key)) continue;
    expectField(operation, key, value, earlier);
  }
}

function expectField(operation: string, key: string, value: unknown, earlier: unknown): void {
  if (key === "request" || key === "settings") expectFields(operation, value, earlier);
  else if (notJson.includes(key)) expectNoPromise(operation, Object(value));
  else {
    const items = Array.isArray(value) && Array.isArray(earlier) ? added(value, earlier) : value;
    expectJson(operation, items);
    if (key === "prompt") expectMessages(operation, [value], ["user"]);
    else if (key === "messages" || key === "transcript") expectMessages(operation, [items].flat());
  }
  const isSignal = key === "signal" && typeof Object(value).aborted === "boolean"; // runtimes name the class of their signals differently
  const type = key === "signal" && !isSignal ? "AbortSignal" : fieldTypes[key];
  if (type) expectType(operation, key, value, type);
  if (key !== "context" || !Array.isArray(value)) return;
  for (const text of value) expectType(operation, "text", text ?? null, "String"); // no text may be left out
}

/** Throws a `TypeError` that starts with `operation` if `value` is a promise. */
export function expectNoPromise(operation: string, value: object): void {
  if (isThenable(value)) {
    ignoreRejections(value);
    throw new TypeError(`${operation}: it is a promise or another thenable; await it`);
  }
}

/** Returns the items that are not in `earlier`. Most lists begin with the same items. */
function added(items: readonly unknown[], earlier: readonly unknown[]): readonly unknown[] {
  let same = 0;
  while (same < items.length && same < earlier.length && items[same] === earlier[same]) same++;
  const rest = items.slice(same);
  const known = new Set(rest.length > 0 ? earlier : []);
  return rest.filter((item) => !known.has(item));
}

/** Merges changed settings one level deep: settings that the change does not name stay. */
export function mergeSettings<C extends { readonly settings: object }>(inner: C, { settings }: C): C {
  return inner.settings === settings ? inner : { ...inner, settings: merged(settings, inner.settings) };
}

/** Returns a `finalize` that rejects an answer whose field `key` is not valid. Hooks written without types may return anything. */
export function requireField<C, R extends object, E>(
  point: Point,
  key: keyof R & string,
  isValid: (value: unknown) => boolean,
  expected = "",
): (answer: HookAnswer<C, R, E>) => R {
  return ({ name, returned }) => {
    if (isValid(returned?.[key])) return returned;
    throw new TypeError(`Cannot leave ${point}: "${name}" returned a value without a valid "${key}"${expected}`);
  };
}

/** Returns a `finalize` that rejects an answer whose field `key` is none of `choices`. */
export function requireChoice<C, R extends object, E>(
  point: Point,
  key: keyof R & string,
  choices: readonly unknown[],
): (answer: HookAnswer<C, R, E>) => R {
  return requireField(point, key, (value) => choices.includes(value), `: expected ${choices.join(", ")}`);
}

/**
 * Returns a `finalize` that rejects an answer with another status than `statuses`, or without a text. A hook may pass on the status "paused", and may not
 * invent it.
 */
export function requireStatus<C, R extends { readonly status: string; readonly text: string }, E>(
  point: Point,
  statuses: readonly R["status"][],
): (answer: HookAnswer<C, R, E>) => R {
  const requireKnown = requireChoice<C, R, E>(point, "status", statuses);
  const requireText = requireField<C, R, E>(point, "text", (text) => typeof text === "string");
  return (answer) => {
    const isPassedOn = answer.returned?.status === "paused" && answer.below?.status === "paused";
    if (!isPassedOn) requireKnown(answer);
    return requireText(answer);
  };
}

/** The statuses of a result that a hook may return. */
export const endStatuses = ["done", "limit", "cancelled", "aborted", "failed"] as const;

/** Returns `base` with the defined values of `change`. */
export function merged<T extends object>(base: T, change: Partial<T>): T {
  const combined = { ...base };
  for (const [key, value] of Object.entries(change)) if (value !== undefined) Reflect.set(combined, key, value);
  return combined;
}
