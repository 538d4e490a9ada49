/**
 * Goes on where a middleware fails.
 *
 * @module
 */
import { type Hook, isInterrupt, type Middleware, type Next, type Point, type Scope } from "../../mod.ts";
import { eachHook } from "../../src/core/kit.ts";

/**
 * Makes a middleware one that the agent can do without: a hook of it that throws is skipped, as if it were not there, and a `hook.skipped` warning says so.
 * Where it has called `next()` already, that result stands, and so does a failure of what lies beneath, which is not the hook's.
 * What ends or pauses the run passes.
 *
 * Approval is not weakened: at `approval` an error denies, here as everywhere. Do not make optional what has to hold, such as `redact()`.
 *
 * ```ts
 * import { agent, type Middleware } from "@jizai/jizai";
 * import { optional } from "@jizai/jizai/middleware/optional";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const memories: Middleware = {
 *   name: "memories",
 *   async prompt(ctx, next) {
 *     throw new Error("The memory service is down.");
 *   },
 * };
 *
 * const { text } = await agent({ model: scripted("Hello!"), use: [optional(memories)] }).run("Hi").result;
 * assertEquals(text, "Hello!");
 * ```
 */
export function optional<V = unknown>(middleware: Middleware<V>): Middleware<V> {
  const { name = "a middleware" } = middleware;
  return eachHook(middleware, (hook, point) => point === "approval" ? hook : skippable(hook, point, name));
}

function skippable<C extends Scope, D, R>(hook: Hook<C, D, R>, point: Point, name: string): Hook<C, D, R> {
  return async function optionalHook(ctx, next) {
    let last: Promise<R> | undefined;
    const noted: Next<D, R> = (change) => last = next(change);
    try {
      return await hook(ctx, noted);
    } catch (error) {
      if (isInterrupt(error) || (!last && ctx.signal.aborted)) throw error;
      const [beneath] = await Promise.allSettled(last ? [last] : []);
      if (beneath?.status === "rejected" && beneath.reason === error) throw error;
      ctx.emit({
        type: "warning",
        code: "hook.skipped",
        message: `A hook of ${name} failed and was skipped.`,
        middleware: name,
        point,
        error: ctx.run.report(error),
      });
      return await (last ?? next());
    }
  };
}
