/**
 * Limits the time of a middleware's own code.
 *
 * @module
 */
import type { Hook, Middleware, Point, Scope } from "../../mod.ts";
import { anySignal, eachHook, expectTime } from "../../src/core/kit.ts";

/**
 * Gives each hook of a middleware `ms` milliseconds for its own code; the time inside `next()` does not count. A hook that takes longer fails with a
 * `TimeoutError` that names it: its `ctx.signal` aborts, the engine abandons it, and its later calls of `next()` throw. At `approval`, the call is denied.
 * Elsewhere, `optional(within(ms, middleware))` continues without the hook. Code that never waits cannot be interrupted.
 *
 * Throws a `RangeError` if `ms` is not positive, or longer than a timer can run (24 days).
 *
 * ```ts
 * import { agent, type Middleware } from "@jizai/jizai";
 * import { within } from "@jizai/jizai/middleware/within";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const stuck: Middleware = { name: "stuck", prompt: () => new Promise(() => {}) };
 *
 * const { status, error } = await agent({ model: scripted(), use: [within(5, stuck)] }).run("Hi").result;
 * assertEquals([status, String(error)], ["failed", "TimeoutError: stuck took more than 5 ms at prompt"]);
 * ```
 */
export function within<V = unknown>(ms: number, middleware: Middleware<V>): Middleware<V> {
  expectTime("Cannot create within(): the time", ms);
  const { name = "a middleware" } = middleware;
  return eachHook(middleware, (hook, point) => timed(hook, point, name, ms));
}

function timed<C extends Scope, D, R>(hook: Hook<C, D, R>, point: Point, name: string, ms: number): Hook<C, D, R> {
  return function withinHook(ctx, next) {
    const late = new AbortController();
    const signal = anySignal([ctx.signal, late.signal]);
    return new Promise<R>((resolve, reject) => {
      const clock = stopwatch(ms, () => {
        late.abort(new DOMException(`${name} took more than ${ms} ms at ${point}`, "TimeoutError"));
        reject(late.signal.reason);
      });

      async function paused(change?: D): Promise<R> {
        late.signal.throwIfAborted();
        clock.stop();
        try {
          return await next(change);
        } finally {
          clock.start();
        }
      }

      function onward(change?: D): Promise<R> {
        const result = paused(change);
        result.catch(() => {}); // an abandoned hook may never await it; a hook that awaits it still sees the error
        return result;
      }

      async function runAttempt(): Promise<R> {
        clock.start();
        try {
          return await hook({ ...ctx, signal }, onward);
        } finally {
          clock.end();
        }
      }

      runAttempt().then(resolve, reject);
    });
  };
}

/** Creates a stopwatch that calls `over` once it has run for `ms` milliseconds in all. */
function stopwatch(ms: number, over: () => void) {
  let left = ms;
  let since: number | undefined;
  let ended = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function start(): void {
    if (since !== undefined || ended) return;
    since = Date.now();
    timer = setTimeout(over, left);
  }

  function stop(): void {
    clearTimeout(timer);
    if (since !== undefined) left = Math.max(0, left - (Date.now() - since)); // runtimes warn about a negative time
    since = undefined;
  }

  function end(): void {
    stop();
    ended = true;
  }

  return { start, stop, end };
}
