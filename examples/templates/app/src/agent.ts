/**
 * The agent: its model, its tools and its middleware.
 *
 * @module
 */
import { agent, tool, vars } from "@jizai/jizai";
import { retry } from "@jizai/jizai/middleware/retry";
import { trace } from "@jizai/jizai/trace";
import * as z from "zod";
import { chooseModel, type Keys } from "./model.ts";

const weather = tool({
  name: "weather",
  description: "Current weather of a city",
  input: z.object({ city: z.string() }),
  execute: ({ city }) => `It is sunny in ${city}.`,
});

/** Asks a person before it runs. */
const sendPostcard = tool({
  name: "send_postcard",
  description: "Sends a postcard",
  input: z.object({ text: z.string() }),
  ask: true,
  execute: ({ text }) => `Sent a postcard of ${text.length} characters.`,
});

/** Options of `assistant()`. */
interface AssistantOptions {
  /** True if only this machine reaches the server: clients then receive each request to the model, with its instructions. Default: false. */
  readonly isLocal?: boolean;
}

/** Creates the agent. Its vars are the API keys. */
export function assistant({ isLocal = false }: AssistantOptions = {}) {
  return agent({
    name: "assistant",
    vars: vars<Keys>(),
    model: ({ vars }) => chooseModel(vars),
    instructions: "You know the weather, and send postcards.",
    tools: [weather, sendPostcard],
    use: [retry()],
    ...(isLocal && { trace }), // the page shows what each middleware did
  });
}
