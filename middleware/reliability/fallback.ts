/**
 * Asks another model where one fails.
 *
 * @module
 */
import { isInterrupt, type Middleware, type Model } from "../../mod.ts";
import { trackShownText } from "../../src/core/kit.ts";

/** When to ask another model. */
export interface FallbackOptions {
  /** Whether another model may do better; `model` is the one that failed. Default: always. */
  readonly when?: (error: unknown, model: Model) => boolean;
  /** Asks another model although text of the answer was shown: `model.reset` tells whoever watches to start over. Default: false. */
  readonly afterText?: boolean;
}

/**
 * Sends a request that failed to the next of `models`, in their order, until one answers; the last failure stands where none does. What ends, pauses or
 * stops the run passes. Each failure that it got over is told to the operator, and `response.model` says who answered.
 *
 * It begins anew with every turn. With `retry` before it all models are tried again, with `retry` after it each of them is.
 *
 * Throws a `RangeError` where there are no models.
 *
 * ```ts
 * import { agent, ModelError } from "@jizai/jizai";
 * import { fallback } from "@jizai/jizai/middleware/fallback";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const model = scripted({ error: new ModelError("Overloaded", { recoverable: true }) });
 * const other = scripted("Hello!");
 *
 * const { text } = await agent({ model, use: [fallback([other])] }).run("Hi").result;
 * assertEquals(text, "Hello!");
 * ```
 */
export function fallback(
  models: readonly Model[],
  { when = () => true, afterText = false }: FallbackOptions = {},
): Middleware {
  if (models.length === 0) throw new RangeError("Cannot fall back: there are no models");
  return {
    name: "fallback",
    async model(ctx, next) {
      const { emit } = ctx;
      const shown = trackShownText(emit);
      let model = ctx.request.model;
      for (const other of models) {
        try {
          return await next({ emit: shown.emit, request: { model } });
        } catch (error) {
          const mayNot = isInterrupt(error) || ctx.signal.aborted || (shown.text && !afterText);
          if (mayNot || !when(error, model)) throw error;
          ctx.run.report(error);
          model = other;
        }
      }
      return await next({ request: { model } });
    },
  };
}
