/**
 * The `turn` and `model` points: texts that wait for the next request, PostToolBatch, MessageDisplay and PostModelSwitch.
 *
 * @module
 */
import { callsOf, type Middleware, type ModelContext, type ModelResponse, type UserMessage } from "../../../../mod.ts";
import { contextOf } from "../ask/answers.ts";
import type { Hooks } from "../ask/hooks.ts";
import { finishBatch } from "./batch.ts";
import { displayOf } from "./display.ts";

/** Creates the hooks at `turn` and `model`. */
export function turnHooks(hooks: Hooks): Pick<Middleware, "turn" | "model"> {
  const { memory } = hooks;
  const display = displayOf(hooks);

  async function reportSwitch(ctx: ModelContext, response: ModelResponse): Promise<void> {
    const from_model = ctx.request.model.id;
    if (response.model === from_model || response.attempts === 0) return;
    const { input, output, cached = 0 } = response.usage;
    const answers = await hooks.ask("PostModelSwitch", ctx, () => ({
      from_model,
      to_model: response.model,
      requested_model: null,
      source: "auto",
      context_tokens: input + output,
      prompt_cache_warm: cached > 0,
      cache_ttl: "5m",
      estimated_cache_write_usd: 0,
      pricing: "default",
    }));
    hooks.addLater(ctx, contextOf(answers));
  }

  return {
    async turn(ctx, next) {
      const texts = ctx.resumed ? [] : memory.later(ctx).get(ctx);
      if (texts.length > 0) memory.later(ctx).set(ctx, []);
      const emit = display.begin(ctx);
      const result = await next({
        ...(texts.length > 0 && { transcript: [...ctx.transcript, messageOf(texts)] }),
        ...(emit && { emit }),
      });
      if (hooks.has("PostToolBatch")) await finishBatch(hooks, ctx, result);
      return result;
    },
    async model(ctx, next) {
      if (ctx.purpose === "summary") return await next();
      const response = await display.during(ctx, next);
      if (hooks.has("PreToolUse", "PostToolBatch")) {
        memory.batch.set(ctx, { ids: callsOf(response).map(({ id }) => id), calls: {}, asked: false });
      }
      await reportSwitch(ctx, response);
      return response;
    },
  };
}

/** Returns texts for the model as a message that the transcript keeps. */
function messageOf(texts: readonly string[]): UserMessage {
  return { role: "user", from: "turn", parts: texts.map((text) => ({ type: "text", text })) };
}
