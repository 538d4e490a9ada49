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

/** The agent. Its vars are the API keys. */
export const assistant = agent({
  name: "assistant",
  vars: vars<Keys>(),
  model: ({ vars }) => chooseModel(vars),
  instructions: "You know the weather, and send postcards.",
  tools: [weather, sendPostcard],
  use: [retry()],
  trace, // the page shows what each middleware did
});
