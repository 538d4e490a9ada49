/**
 * The laws of middleware, the report of those that were broken, and the search for leaks.
 *
 * @module
 */
import type { Point } from "../../protocol/event.ts";

/** The laws, as reports name them. */
const laws = {
  passes: "passes on the results and errors of the inner layers",
  unwinds: "passes on what ends or pauses a run",
  next: "calls next() as the point allows, and awaits it",
  readonly: "changes nothing that it was given",
  streams: "streams the text that it returns",
  valid: "leaves the transcript valid",
  clean: "leaves no listener and no timer behind",
  stops: "stops when its signal aborts",
  apart: "keeps one run apart from another",
  clock: "reads the time with ctx.run.now()",
} as const;

/** The fix for a broken law, as reports name it. */
const fixes: Readonly<Record<keyof typeof laws, string>> = {
  passes: "Return the result of next(), and rethrow what it throws, unless the hook answers itself.",
  unwinds: "Rethrow an error for which isInterrupt() is true.",
  next:
    "Await next(), and call it again only after it has settled: at model, and at execute for a tool with idempotent: true.",
  readonly: "Pass a change to next(), or return a new object such as { ...result, parts }.",
  streams: "Change the deltas too: use rewrite() at model, or pass next({ emit }) a filter that changes text.delta.",
  valid: "Keep each call of the transcript together with its result.",
  clean: "Clear timers and remove listeners in a finally block.",
  stops: "Pass ctx.signal to what the hook waits for, and stop when it aborts.",
  apart:
    "Keep the data of a run in state(), not in the closure or the module. If runs share data on purpose, such as a cache, pass { shares: true }. " +
    "If the results or events contain the time, use ctx.run.now().",
  clock: "Use ctx.run.now() in place of Date, so that a test or a replay sets the time. The option `now` sets it here.",
};

/** The observations of a hook that reads vars which the test does not have. */
const missingVars =
  /(undefined|null).*(reading|properties|object|evaluating)|(reading|properties|object|evaluating).*(undefined|null)/;

/** Reports a broken law: what was observed, and at which point if that is known. */
export type Report = (law: keyof typeof laws, observation: string, point?: Point) => void;

/** The options that a report may advise. */
interface Hints {
  /** True if the test has no vars. Default: false. */
  readonly vars?: boolean;
}

/** The broken laws of all scenarios. */
interface Findings {
  /** Returns the function that reports a broken law of one scenario. */
  in(scenario: string): Report;
  /** Returns a paragraph for each broken law, with each observation once, and its fix; empty if no law was broken. */
  report(name: string, hints?: Hints): string;
}

/** Creates an empty list of findings. */
export function findings(): Findings {
  const found: { readonly law: string; readonly observation: string; readonly scenario: string }[] = [];

  function linesOf(law: string): readonly string[] {
    const seen = new Map<string, string[]>();
    for (const { observation, scenario } of found.filter((finding) => finding.law === law)) {
      seen.set(observation, [...seen.get(observation) ?? [], scenario]);
    }
    return [...seen].map(([observation, [first, ...more]]) =>
      `- ${observation} (${first}${more.length > 0 ? `, and ${more.length} more` : ""})`
    );
  }

  return {
    in: (scenario) => (law, observation, point) =>
      void found.push({ law, observation: point ? `at ${point}, ${observation}` : observation, scenario }),
    report: (name, hints = {}) =>
      Object.entries(laws).flatMap(([law, title]) => {
        const lines = linesOf(law);
        const isConsequence = law === "streams" && found.some((finding) => finding.law !== law); // the text differs because another law is broken
        if (lines.length === 0 || isConsequence) return [];
        const needsVars = hints.vars && lines.some((line) => missingVars.test(line));
        const fix = needsVars
          ? 'If the hook reads ctx.vars, pass them: { vars: { user: "ann" } }.'
          : fixes[law as keyof typeof laws]; // its own keys
        return [`"${name}" breaks the law that a middleware ${title}:`, ...lines, `  ${fix}`];
      }).join("\n"),
  };
}

// Leaks: timers that still run after a run, and listeners that were not removed from signals.

/** A watch for leaks. */
interface LeakWatch {
  /** Tracks a signal: its listeners must be removed. */
  track(signal: AbortSignal): void;
  /** Returns the timers and listeners that are left, and where they were added. */
  list(): readonly string[];
  /** Ends the watch. */
  end(): void;
}

/** Watches every timer and every listener of a signal until `end()`. Call it within `exclusively()`: it replaces global functions. */
export function watchLeaks(): LeakWatch {
  const timers = new Map<unknown, Finding>();
  const listeners = new Map<AbortSignal, Map<unknown, Finding>>();
  const tracked = new Set<AbortSignal>();

  const start: Instead = (original, name, [run, ms = 0, ...args]) => {
    const over = () => {
      if (name === "setTimeout") timers.delete(id);
      if (typeof run === "function") run(...args);
    };
    const id = original(over, ms);
    const place = caller();
    timers.set(id, () => place().runtime ? undefined : `a ${name}() of ${ms} ms, set at ${place().at}`);
    return id;
  };
  const clear: Instead = (stop, _, [id]) => {
    timers.delete(id);
    return stop(id);
  };
  const listen: Instead = (add, _, [type, listener, options], on) => {
    if (on instanceof AbortSignal) {
      const ofSignal = listeners.get(on) ?? new Map<unknown, Finding>();
      const place = caller();
      listeners.set(on, ofSignal.set(listener, () => `a listener on ctx.signal, added at ${place().at}`));
    }
    return add(type, listener, options);
  };
  const leave: Instead = (remove, _, [type, listener, options], on) => {
    if (on instanceof AbortSignal) listeners.get(on)?.delete(listener);
    return remove(type, listener, options);
  };

  const restore = [
    swap(globalThis, "setTimeout", start),
    swap(globalThis, "setInterval", start),
    swap(globalThis, "clearTimeout", clear),
    swap(globalThis, "clearInterval", clear),
    swap(EventTarget.prototype, "addEventListener", listen),
    swap(EventTarget.prototype, "removeEventListener", leave),
  ];

  return {
    track: (signal) => void tracked.add(signal),
    list: () =>
      [
        ...timers.values(),
        ...[...tracked].flatMap((signal) => signal.aborted ? [] : [...listeners.get(signal)?.values() ?? []]),
      ].map((finding) => finding()).filter((finding) => finding !== undefined),
    end: () => restore.forEach((back) => back()),
  };
}

/** Moves the time of `Date` by more than a year while `work` runs. Call it within `exclusively()`. */
export async function aYearLater<R>(work: () => Promise<R>): Promise<R> {
  const original = globalThis.Date;
  const now = () => original.now() + 400 * 86_400_000;
  globalThis.Date = new Proxy(original, {
    get: (target, key) => key === "now" ? now : Reflect.get(target, key),
    construct: (target, args, type) => Reflect.construct(target, args.length > 0 ? args : [now()], type),
  });
  try {
    return await work();
  } finally {
    globalThis.Date = original;
  }
}

/** Describes a timer or a listener that is left. Undefined if it belongs to the runtime, such as a timer of the connections of `fetch()`. */
type Finding = () => string | undefined;

const busy = Symbol.for("jizai.testing.busy");

/** Runs `work` after other calls of this function have ended, in all copies of this module: the watched functions are global. */
export async function exclusively(work: () => Promise<void>): Promise<void> {
  for (let other: unknown; (other = Reflect.get(globalThis, busy));) await other;
  const { promise, resolve } = Promise.withResolvers<void>();
  Reflect.set(globalThis, busy, promise);
  try {
    await work();
  } finally {
    Reflect.deleteProperty(globalThis, busy);
    resolve();
  }
}

/** A replacement of a function. It receives the function, its name, its arguments and `this`. */
type Instead = (original: (...args: unknown[]) => unknown, name: string, args: unknown[], on: unknown) => unknown;

/** Replaces `target[key]`. Returns a function that restores it. */
function swap<T extends object, K extends keyof T & string>(target: T, key: K, instead: Instead): () => void {
  const original = target[key];
  if (typeof original !== "function") throw new TypeError(`Cannot watch ${key}: there is none`);
  target[key] = new Proxy(original, {
    apply: (_, on, args) => instead((...all) => Reflect.apply(original, on, all), key, args, on),
  });
  return () => {
    target[key] = original;
  };
}

/** The caller of a watched function. */
interface Caller {
  /** The place in the code outside of the runtime. */
  readonly at: string;
  /** True if the runtime itself called the function. */
  readonly runtime: boolean;
}

/** Returns a function that names the caller of a watched function. The stack is only formatted when it is needed, since that is slow. */
function caller(): () => Caller {
  const error = new Error();
  const inRuntime = (line: string) => /ext:|node:|internal:|bun:/.test(line);
  return () => {
    const callers = (error.stack ?? "").split("\n").slice(4); // below this function, its caller and the proxy
    const line = callers.find((line) => !inRuntime(line));
    const at = line?.match(/[^\s(]+:\d+:\d+/)?.[0] ?? "an unknown place";
    return { at, runtime: callers[0] !== undefined && inRuntime(callers[0]) };
  };
}
