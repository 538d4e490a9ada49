/**
 * Serves an agent on Node, with `@hono/node-server`.
 *
 * ```sh
 * npm install @jizai/jizai @hono/node-server hono zod
 * node main.ts
 * ```
 *
 * @module
 */
import { serve as listen } from "@hono/node-server";
import { agent, serve, tool } from "@jizai/jizai";
import { openai } from "@jizai/jizai/model/openai";
import { scripted } from "@jizai/jizai/model/scripted";
import { playground } from "@jizai/jizai/playground";
import process from "node:process";
import * as z from "zod";

const weather = tool({
  name: "weather",
  description: "Current weather of a city",
  input: z.object({ city: z.string() }),
  execute: ({ city }) => `It is sunny in ${city}.`,
});

const apiKey = process.env.OPENAI_API_KEY;
const assistant = agent({
  // without a key, a script answers one prompt
  model: apiKey
    ? openai({ model: "gpt-6.1-terra", apiKey })
    : scripted({ calls: [["weather", { city: "Kyoto" }]] }, "It is sunny in Kyoto."),
  instructions: "You know the weather.",
  tools: [weather],
});

const closing = new AbortController();
const app = serve(assistant, {
  page: playground(),
  onClientGone: "detach",
  onError: (error, { id }) => console.error(id, error),
  signal: closing.signal, // runs stop with the server
});

const hostname = process.env.HOST ?? "localhost";
const local = ["localhost", "127.0.0.1", "[::1]", "::1"];

/** On this machine only, refuses other hosts: a page whose name resolves to 127.0.0.1 could use the server, which has no login. */
function fetch(request: Request): Response | Promise<Response> {
  const isServed = !local.includes(hostname) || local.includes(new URL(request.url).hostname);
  return isServed ? app.fetch(request) : new Response("Cannot serve this host\n", { status: 403 });
}

const server = listen({ fetch, hostname, port: Number(process.env.PORT ?? 8000) }, ({ port }) => {
  console.log(`The agent is at http://${hostname}:${port}`);
});
process.once("SIGTERM", () => {
  closing.abort();
  server.close();
});
