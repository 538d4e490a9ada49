/**
 * Around a turn: what waits for the model is told, `PostToolBatch` is asked about its calls, and `MessageDisplay` about its text.
 *
 * @module
 */
import { callsOf, type Middleware, textOf, type TurnContext, type TurnResult } from "../../../mod.ts";
import { blockOf, contextOf } from "./answers.ts";
import { displaying } from "./display.ts";
import type { Hooks } from "./hooks.ts";

/** The hooks of a middleware at `turn` and `model`. */
export function turn(hooks: Hooks): Pick<Middleware, "turn" | "model"> {
  const { memory } = hooks;
  const { begin, display } = displaying(hooks);
  const ofBatches = hooks.has("PostToolBatch");

  async function batched(ctx: TurnContext, { response, results }: TurnResult): Promise<void> {
    if (results.length === 0 || !ofBatches) return;
    const inputs = {
      ...Object.fromEntries(callsOf(response).map(({ id, input }) => [id, input])),
      ...memory.inputs.get(ctx),
    };
    const tool_calls = results.map(({ name, callId, parts }) => ({
      tool_name: name,
      tool_input: inputs[callId],
      tool_use_id: callId,
      tool_response: textOf({ parts }),
    }));
    const answers = await hooks.ask("PostToolBatch", ctx, { point: "turn", told: () => ({ tool_calls }) });
    const blocked = blockOf(answers);
    if (!hooks.endOf("PostToolBatch", ctx, answers) && blocked !== undefined) hooks.end(ctx, blocked);
    hooks.tellLater(ctx, contextOf(answers));
  }

  return {
    async turn(ctx, next) {
      if (ofBatches && !ctx.resumed) memory.inputs.set(ctx, {});
      const said = ctx.resumed ? [] : memory.later(ctx).get(ctx);
      if (said.length > 0) memory.later(ctx).set(ctx, []);
      const emit = begin(ctx);
      const result = await next({
        ...(said.length > 0 && { context: [...ctx.context, ...said] }),
        ...(emit && { emit }),
      });
      await batched(ctx, result);
      return result;
    },
    async model(ctx, next) {
      const response = await display(ctx, next);
      const from = ctx.request.model.id;
      if (response.model === from || response.attempts === 0) return response;
      const { input, output, cached = 0 } = response.usage;
      const answers = await hooks.ask("PostModelSwitch", ctx, {
        point: "model",
        of: response.model,
        told: () => ({
          from_model: from,
          to_model: response.model,
          requested_model: null,
          source: "auto" as const,
          context_tokens: input + output,
          prompt_cache_warm: cached > 0,
          cache_ttl: "5m" as const,
          estimated_cache_write_usd: 0,
          pricing: "default" as const,
        }),
      });
      hooks.tellLater(ctx, contextOf(answers));
      return response;
    },
  };
}
