/**
 * Tells the model something more in every turn.
 *
 * @module
 */
import type { Middleware, TurnContext } from "../../mod.ts";

/** What the model is told: a text, or who says it for one turn. Nothing is added for an empty text, or for none. */
export type Injected<V = unknown> =
  | string
  | ((ctx: TurnContext<V>) => string | undefined | Promise<string | undefined>);

/**
 * Adds context to every request, after the messages. It is seen by the turn it was made for, and never kept: what one turn was told, the next one is not.
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
      if (ctx.resumed) return await next(); // the model has answered already
      const text = typeof context === "string" ? context : await context(ctx);
      return await next(text ? { context: [...ctx.context, text] } : undefined);
    },
  };
}
