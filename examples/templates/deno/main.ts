/**
 * Serves the agent on Deno and Deno Deploy. Its sessions are in Deno KV.
 *
 * @module
 */
import { serve } from "@jizai/jizai";
import { playground } from "@jizai/jizai/playground";
import { denoKvStore } from "@jizai/jizai/session/deno_kv";
import { assistant } from "../app/src/agent.ts";
import { refuseOtherHosts } from "../app/src/local.ts";

const kv = await Deno.openKv();
const closing = new AbortController();

// Deno Deploy and Ctrl-C send SIGINT, containers SIGTERM. Streams end, and another process continues the runs.
for (const signal of Deno.build.os === "windows" ? ["SIGINT"] as const : ["SIGINT", "SIGTERM"] as const) {
  Deno.addSignalListener(signal, () => closing.abort());
}

const isLocal = Deno.args.includes("--local"); // as `deno task start` passes it

const app = serve(assistant({ isLocal }), {
  vars: () => ({
    OPENAI_API_KEY: Deno.env.get("OPENAI_API_KEY"),
    ANTHROPIC_API_KEY: Deno.env.get("ANTHROPIC_API_KEY"),
  }),
  page: playground(),
  store: denoKvStore(kv), // a client that reconnects receives the events that it missed
  onClientGone: "detach", // a run continues when its client disconnects
  capacity: { bytes: 400 * 2 ** 20 }, // of the 512 MB of Deno Deploy
  signal: closing.signal,
});

export default {
  fetch(request: Request, info: Deno.ServeHandlerInfo): Response | Promise<Response> {
    const refusal = isLocal ? refuseOtherHosts(request) : undefined;
    return refusal ?? app.fetch(request, info);
  },
};
