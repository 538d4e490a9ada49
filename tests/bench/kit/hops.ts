/**
 * The hops of a request: the functions of `src/` that call or await each other between a route and the start of its run. V8's stack of the run's start names them.
 *
 * @module
 */
import { agent, memory, serve, type Store, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";

const source = new URL("../../../src/", import.meta.url).href;

/**
 * Returns the functions from a route to `start()`, outermost first, for a prompt and for answers. The requests take the longest way:
 * they have an idempotency key and a session, and prompts wait for their session. A function that only returns the promise of another one is not in V8's stack.
 */
export async function hopsToStart(): Promise<ReadonlyMap<string, readonly string[]>> {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 100;
  try {
    const [prompt, answers] = await hopsOf();
    return new Map(Object.entries({ prompt, answers }));
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Sends a prompt and then the answer to its question. Returns the functions from each route to `start()`. */
async function hopsOf(): Promise<readonly [string[], string[]]> {
  const starts: string[][] = [];
  const sessions = memory();
  const { journal } = sessions;
  const store: Store = {
    ...sessions,
    journal: {
      ...journal,
      open(key) { // the first effect of `start()`
        const hops = hopsIn(new Error().stack ?? "");
        if (hops.at(-1)?.startsWith("start ")) starts.push(hops);
        return journal.open(key);
      },
    },
  };
  const drop = tool({ name: "drop", description: "", input: z.object({}), ask: true, execute: () => "Dropped." });
  const asking = agent({ model: scripted({ calls: [["drop", {}]] }, "It is gone."), tools: [drop] });
  const app = serve(asking, { store, busy: "queue" });
  async function post(path: string, body: object): Promise<string> {
    const headers = { "content-type": "application/json", "idempotency-key": path };
    const response = await app.request(path, { method: "POST", headers, body: JSON.stringify(body) });
    return await response.text();
  }
  await store.save({ id: "s", version: 0, messages: [] });
  const asked = await post("/runs", { prompt: "Drop it", session: "s" });
  const [, callId] = /"callId":"([^"]+)"/.exec(asked) ?? [];
  await post("/sessions/s/answers", { answers: [{ type: "approve", callId }] });
  const [prompt, answers] = starts;
  if (!prompt || !answers || starts.length > 2) {
    throw new Error(`Cannot count hops: ${starts.length} runs started, not 2`);
  }
  return [prompt, answers];
}

/** Returns the functions of `src/` in a stack up to `start()`, with their files, outermost first. Throws if the stack does not reach the route. */
function hopsIn(stack: string): string[] {
  const frames = stack.split("\n").slice(1).toReversed();
  const route = frames.findIndex((frame) => frame.includes(source));
  if (!frames.slice(0, route).some((frame) => frame.includes("/hono/"))) {
    throw new Error(`Cannot count hops: the stack does not reach the route:\n${stack}`);
  }
  const hops = frames.slice(route).flatMap((frame) => {
    const [, name, file] = /^ +at (?:async )?(.*?) ?\(?(?:file:[^)]*\/src\/(\S+?)):\d+:\d+\)?$/.exec(frame) ?? [];
    return file === undefined ? [] : [`${name || "(anonymous)"} ${file}`];
  });
  return hops.slice(0, hops.findIndex((hop) => hop === "start core/start.ts") + 1);
}
