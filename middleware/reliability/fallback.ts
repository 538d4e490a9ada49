/**
 * Sends a failed request to another model.
 *
 * @module
 */
import { isInterrupt, type Middleware, type Model } from "../../mod.ts";
import { expectNames, trackShownText } from "../../src/core/kit.ts";

/** Options of `fallback()`. */
export interface FallbackOptions {
  /** Whether to try the next model; `model` is the one that failed. Default: always. */
  readonly when?: (error: unknown, model: Model) => boolean | Promise<boolean>;
  /** Tries the next model even if text of the answer was emitted; `model.reset` then tells clients to discard the text. Default: false. */
  readonly afterText?: boolean;
}

/**
 * Sends a failed request to the next of `models`, in order, until one answers. If all fail, the last failure stands. Interrupts and a stopped run are not
 * retried. Every failure that leads to another model is reported to the operator. `response.model` names the model that answered.
 *
 * Each turn starts with the first model. With `retry` before it, an attempt tries all models again; with `retry` after it, each model has its own attempts.
 *
 * Throws a `RangeError` if there are no models.
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
export function fallback(models: readonly Model[], options: FallbackOptions = {}): Middleware {
  expectNames("Cannot create fallback()", options, ["when", "afterText"]);
  const { when = () => true, afterText = false } = options;
  if (models.length === 0) throw new RangeError("Cannot create fallback(): there are no models; expected at least one");
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
          if (mayNot || !await when(error, model)) throw error;
          ctx.run.report(error);
          model = other;
        }
      }
      return await next({ request: { model } });
    },
  };
}
