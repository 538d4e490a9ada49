/**
 * Executes calls one at a time.
 *
 * @module
 */
import type { ExecuteContext, Middleware } from "../../mod.ts";
import { cancellationOf, Locks } from "../../src/core/kit.ts";

/**
 * Executes one call at a time for each key, in the order of their `callIndex`. Calls with different keys run in parallel. `key` is one key for all calls,
 * or a function; a call for which it returns `undefined` does not wait. Default: the name of the tool.
 *
 * The lock is held only during `execute`, when all calls of the batch have entered, so no call waits for one that cannot start. A waiting call holds no slot
 * of `limits.parallel`. Locks are shared by all runs of the agent in this process. Before `retry`, the lock is held during all attempts; after `retry`, each
 * attempt takes it again. An agent that runs as a tool must not hold a key that its own tools wait for.
 *
 * ```ts
 * import { agent, tool } from "@jizai/jizai";
 * import { serial } from "@jizai/jizai/middleware/serial";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const log: string[] = [];
 * const move = tool({
 *   name: "move",
 *   description: "Moves the arm",
 *   input: z.object({ to: z.string() }),
 *   async execute({ to }) {
 *     log.push(`to ${to}`);
 *     await Promise.resolve();
 *     log.push(`at ${to}`);
 *     return "done";
 *   },
 * });
 * const model = scripted({ calls: [["move", { to: "A" }], ["move", { to: "B" }]] }, "Both done.");
 *
 * await agent({ model, tools: [move], use: [serial()] }).run("Go to A, then to B").result;
 * assertEquals(log, ["to A", "at A", "to B", "at B"]);
 * ```
 */
export function serial<V = unknown>(
  key: string | ((ctx: ExecuteContext<V>) => string | undefined | Promise<string | undefined>) = ({ tool }) =>
    tool.name,
): Middleware<V> {
  const locks = new Locks();
  return {
    name: "serial",
    async execute(ctx, next) {
      const lockKey = typeof key === "string" ? key : key(ctx);
      const name = typeof lockKey === "object" ? await lockKey : lockKey; // a key that is known keeps the order of the calls
      return name === undefined ? await next() : await locks.hold(name, cancellationOf(ctx.signal), next);
    },
  };
}
