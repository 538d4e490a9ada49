/**
 * Refuses an empty prompt: the model gets no request, and the prompt is not stored.
 *
 * ```sh
 * deno run examples/hooks/empty_prompt.ts
 * ```
 *
 * @module
 */
import { agent, cancelled, type Middleware, textOf } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";

/** Cancels an empty prompt. */
export const emptyPrompt: Middleware = {
  name: "emptyPrompt",
  async prompt(ctx, next) {
    return textOf(ctx.prompt).trim() === "" ? cancelled("The prompt is empty.") : await next();
  },
};

/** Runs an empty prompt, then another. Returns both outcomes. */
export async function run(): Promise<string[]> {
  const assistant = agent({ model: scripted("Hello!"), use: [emptyPrompt] });
  const empty = await assistant.run("  ").result;
  const full = await assistant.run("Hi").result;
  return [`${empty.status}: ${empty.reason}`, `${full.status}: ${full.text}`];
}

if (import.meta.main) console.log((await run()).join("\n"));
