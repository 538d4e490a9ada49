/**
 * Continues if a middleware fails.
 *
 * @module
 */
import { type Hook, isInterrupt, type Middleware, type Next, type Point, type Scope } from "../../mod.ts";
import { eachHook } from "../../src/core/kit.ts";

/**
 * Makes a middleware optional: a hook that throws is skipped, and a `hook.skipped` warning is emitted. If the hook has already called `next()`, the result
 * of `next()` stands. Failures of inner layers and interrupts pass through.
 *
 * At `approval`, an error still denies the call. Do not wrap middleware that must hold, such as `redact()`.
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
    const tracked: Next<D, R> = (change) => last = next(change);
    try {
      return await hook(ctx, tracked);
    } catch (error) {
      if (isInterrupt(error) || (!last && ctx.signal.aborted)) throw error;
      const [inner] = await Promise.allSettled(last ? [last] : []);
      if (inner?.status === "rejected" && inner.reason === error) throw error;
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
