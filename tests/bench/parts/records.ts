/**
 * The cost of storing events, and the time until a long session resumes.
 *
 * @module
 */
import { agent, type Message, serve, tool } from "@jizai/jizai";
import { denoKvStore } from "@jizai/jizai/session/deno_kv";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import * as z from "zod";
import { calling, served, streaming } from "../kit/load.ts";
import type { Measure } from "../kit/measure.ts";
import { median, medians } from "../kit/stopwatch.ts";

const count = 10_000;

/** Keeps nothing, so that a server with it alone stores no events. */
const tokens = resumeTokens({ keys: [{ id: "1", secret: "a secret of at least thirty-two characters" }] });

/** Streams ten thousand deltas that are stored, and resumes a session of 1,000 messages. */
export async function recordMeasures(): Promise<readonly Measure[]> {
  using kv = await Deno.openKv(":memory:");
  const time = await medians({
    without: served(streaming(count), {}, { resumeTokens: tokens }),
    memory: served(streaming(count)),
    kv: served(streaming(count), {}, { store: denoKvStore(kv) }),
  }, { rounds: 30, warmUp: 5 });
  const more = (time.memory / time.without - 1) * 100;
  return [
    { what: "10,000 deltas stored in memory", figure: more, atMost: 25, unit: "%" },
    { what: "... stored in Deno KV in memory, of none stored", figure: time.kv / time.without, atMost: 2, unit: "x" },
    await resumeMeasure(),
  ];
}

/** The time from a person's answer to the first event, in a session of 1,000 messages on a disk. */
async function resumeMeasure(): Promise<Measure> {
  await Deno.mkdir("dist", { recursive: true });
  const folder = await Deno.makeTempDir({ dir: "dist" });
  try {
    using kv = await Deno.openKv(`${folder}/kv`);
    const resume = await pausedSession(kv);
    const times: number[] = [];
    for (let round = 0; round < 30; round++) times.push(await resume());
    return {
      what: "first event of a resumed session of 1,000 messages, Deno KV on disk",
      figure: median(times),
      atMost: 20,
      unit: "ms",
    };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Begins a session that pauses again and again. The returned function answers and returns the milliseconds until the first event. */
async function pausedSession(kv: Deno.Kv): Promise<() => Promise<number>> {
  const work = tool({
    name: "work",
    description: "Works",
    input: z.object({ index: z.number() }),
    ask: true,
    execute: () => "ok",
  });
  const app = serve(agent({ model: calling(1, Infinity), tools: [work], limits: { turns: 1_000 } }), {
    store: denoKvStore(kv),
  });
  const send = (path: string, body: unknown) =>
    app.request(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const messages = Array.from({ length: 1_000 }, (_, index): Message => {
    const parts = [{ type: "text", text: `Message ${index}: ${"so much and more ".repeat(12)}` }] as const;
    return index % 2 === 1 ? { role: "user", parts } : { role: "assistant", parts };
  });
  let paused = await (await send("/runs", { messages })).text();
  const session = paused.match(/"session":"([^"]+)"/)?.[1];
  return async () => {
    const callId = paused.match(/"run.paused","questions":\[{"callId":"([^"]+)"/)?.[1];
    const start = performance.now();
    const { body, ok } = await send(`/sessions/${session}/answers`, { answers: [{ callId, type: "approve" }] });
    if (!ok) throw new Error("Cannot measure: the server refused the answer");
    const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
    const first = await reader?.read();
    const time = performance.now() - start;
    paused = first?.value ?? "";
    for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) paused += read.value;
    return time;
  };
}
