/**
 * The first agent of the README: one tool, a provider, and a server.
 *
 * ```sh
 * OPENAI_API_KEY=sk-... deno serve --allow-net --allow-env=OPENAI_API_KEY examples/first_agent/main.ts
 * ```
 *
 * @module
 */
import { agent, serve, tool } from "@jizai/jizai";
import { openai } from "@jizai/jizai/model/openai";
import * as z from "zod";

const weather = tool({
  name: "weather",
  description: "Current weather of a city",
  input: z.object({ city: z.string() }),
  execute: ({ city }) => `Sunny in ${city}`,
});
const assistant = agent({
  model: openai({ model: "gpt-6.1-terra", apiKey: Deno.env.get("OPENAI_API_KEY") ?? "" }),
  instructions: "You know the weather.",
  tools: [weather],
});
const closing = new AbortController();
Deno.addSignalListener("SIGINT", () => closing.abort()); // Ctrl-C ends the streams, which would keep the server open
export default serve(assistant, { signal: closing.signal, onError: (error, { id }) => console.error(id, error) });
