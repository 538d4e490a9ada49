/**
 * Adds context to every turn.
 *
 * @module
 */
import type { Middleware, TurnContext } from "../../mod.ts";

/** Text to add, or a function that returns the text for a turn. Nothing is added for an empty text or `undefined`. */
export type Injected<V = unknown> =
  | string
  | ((ctx: TurnContext<V>) => string | undefined | Promise<string | undefined>);

/**
 * Adds context to the request of every turn, after the messages. The context belongs to that turn only: the transcript does not keep it.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { inject } from "@jizai/jizai/middleware/inject";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const model = scripted("It is Monday.");
 * await agent({ model, use: [inject(({ index }) => `Turn ${index}, a Monday.`)] }).run("Which day?").result;
 * assertEquals(model.requests[0]?.messages.at(-1)?.role, "user");
 * ```
 */
export function inject<V = unknown>(context: Injected<V>): Middleware<V> {
  return {
    name: "inject",
    async turn(ctx, next) {
      if (ctx.resumed) return await next(); // the model has already answered
      const text = typeof context === "string" ? context : await context(ctx);
      return await next(text ? { context: [...ctx.context, text] } : undefined);
    },
  };
}
