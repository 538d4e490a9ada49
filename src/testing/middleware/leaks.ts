/**
 * Leaks: timers that still run after a run, and listeners that were not removed from signals.
 *
 * @module
 */

/** A watch for leaks. */
export interface LeakWatch {
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

  const start: Instead = (begin, name, [run, ms = 0, ...given]) => {
    const over = () => {
      if (name === "setTimeout") timers.delete(id);
      if (typeof run === "function") run(...given);
    };
    const id = begin(over, ms);
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
type Instead = (original: (...given: unknown[]) => unknown, name: string, given: unknown[], on: unknown) => unknown;

/** Replaces `target[key]`. Returns a function that restores it. */
function swap<T extends object, K extends keyof T & string>(target: T, key: K, instead: Instead): () => void {
  const original = target[key];
  if (typeof original !== "function") throw new TypeError(`Cannot watch ${key}: there is none`);
  target[key] = new Proxy(original, {
    apply: (_, on, given) => instead((...all) => Reflect.apply(original, on, all), key, given, on),
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
