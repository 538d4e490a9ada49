/**
 * Runs calls one at a time.
 *
 * @module
 */
import type { ExecuteContext, Middleware } from "../../mod.ts";
import { cancellationOf, Locks } from "../../src/core/kit.ts";

/**
 * Lets one call at a time work for each key, in the order of their `callIndex`, while calls of other keys run beside it. `key` is one for all calls, or says
 * whose turn a call waits for; one that it gives no key waits for nobody. Default: the tool's name.
 *
 * The key is taken around the work alone, when all calls of the batch are in, so that no call waits for one that was not begun; a waiting call takes
 * no place of `limits.parallel`. It lasts as long as the agent, so calls of other runs in this process wait too. A call that a hook before it holds back
 * waits where it comes; so does the next try of a `retry` before it, while one after it keeps the others waiting. An agent that runs as a tool must not
 * hold a key that its own tools wait for.
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
  key: string | ((ctx: ExecuteContext<V>) => string | undefined) = ({ tool }) => tool.name,
): Middleware<V> {
  const locks = new Locks();
  return {
    name: "serial",
    async execute(ctx, next) {
      const name = typeof key === "string" ? key : key(ctx);
      return name === undefined ? await next() : await locks.hold(name, cancellationOf(ctx.signal), next);
    },
  };
}
