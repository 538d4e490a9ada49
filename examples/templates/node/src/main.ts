/**
 * Serves the agent on Node.
 *
 * @module
 */
import { serve as listen } from "@hono/node-server";
import { serve } from "@jizai/jizai";
import { playground } from "@jizai/jizai/playground";
import process from "node:process";
import { assistant } from "../../app/src/agent.ts";
import { refuseOtherHosts } from "../../app/src/local.ts";

const hostname = process.env.HOST ?? "localhost";
const isLocal = ["localhost", "127.0.0.1", "::1"].includes(hostname);

const closing = new AbortController();
const app = serve(assistant({ isLocal }), {
  vars: () => ({
    OPENAI_API_KEY: process.env.OPENAI_API_KEY,
    ANTHROPIC_API_KEY: process.env.ANTHROPIC_API_KEY,
  }),
  page: playground(),
  onClientGone: "detach", // a run continues when its client disconnects
  signal: closing.signal,
});

function fetch(request: Request): Response | Promise<Response> {
  const refusal = isLocal ? refuseOtherHosts(request) : undefined;
  return refusal ?? app.fetch(request);
}

const server = listen({ fetch, hostname, port: Number(process.env.PORT ?? 8000) }, ({ port }) => {
  console.log(`The agent is at http://${hostname}:${port}`);
});

server.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EADDRINUSE") throw error;
  console.error("Cannot serve: another program uses the port; set PORT in .env to another one");
  process.exit(1);
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => {
    closing.abort();
    server.close();
  });
}
