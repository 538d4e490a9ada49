/**
 * A watch over what outlives a run by mistake: timers that still run, and listeners on signals that were only lent.
 *
 * @module
 */

/** A watch that is being kept. */
export interface Watch {
  /** Says that a signal is lent: whoever listens to it has to leave again. */
  lend(signal: AbortSignal): void;
  /** What is still there, and where it was made. */
  left(): readonly string[];
  /** Ends the watch. */
  end(): void;
}

/** Watches every timer and every listener of a signal until `end()`. Whoever watches is `alone()`. */
export function watch(): Watch {
  const timers = new Map<unknown, Finding>();
  const listeners = new Map<AbortSignal, Map<unknown, Finding>>();
  const lent = new Set<AbortSignal>();

  const start: Instead = (begin, name, [run, ms = 0, ...given]) => {
    const over = () => {
      if (name === "setTimeout") timers.delete(id);
      if (typeof run === "function") run(...given);
    };
    const id = begin(over, ms);
    const place = caller();
    timers.set(id, () => `a ${name}() of ${ms} ms, set at ${place()}`);
    return id;
  };
  const clear: Instead = (stop, _, [id]) => {
    timers.delete(id);
    return stop(id);
  };
  const listen: Instead = (add, _, [type, listener, options], on) => {
    if (on instanceof AbortSignal) {
      const heard = listeners.get(on) ?? new Map<unknown, Finding>();
      const place = caller();
      listeners.set(on, heard.set(listener, () => `a listener on ctx.signal, added at ${place()}`));
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
    lend: (signal) => void lent.add(signal),
    left: () =>
      [
        ...timers.values(),
        ...[...lent].flatMap((signal) => signal.aborted ? [] : [...listeners.get(signal)?.values() ?? []]),
      ].map((finding) => finding()),
    end: () => restore.forEach((back) => back()),
  };
}

/** Describes a timer or a listener that is left. */
type Finding = () => string;

const busy = Symbol.for("jizai.testing.busy");

/** Does `work` when no other such work is being done, in any copy of this module: what is watched is everybody's. */
export async function alone(work: () => Promise<void>): Promise<void> {
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

/** What is done in the place of a function: the function, its name, and what it is called with and on. */
type Instead = (original: (...given: unknown[]) => unknown, name: string, given: unknown[], on: unknown) => unknown;

/** Has `instead` called for `target[key]`; the answer takes that back. */
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

/** Returns a function that names the place of the caller of a watched function. The stack is only formatted when it is needed, since that is slow. */
function caller(): () => string {
  const error = new Error();
  return () => {
    const callers = (error.stack ?? "").split("\n").slice(4); // beneath this function, its caller and the proxy
    const line = callers.find((line) => !/ext:|node:internal/.test(line));
    return line?.match(/[^\s(]+:\d+:\d+/)?.[0] ?? "an unknown place";
  };
}
