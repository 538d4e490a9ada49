/**
 * What it costs to hear a provider, beside reading the same bytes and cutting them into frames.
 *
 * @module
 */
import type { Model } from "@jizai/jizai";
import { anthropic } from "@jizai/jizai/model/anthropic";
import { openai } from "@jizai/jizai/model/openai";
import { texts } from "./floor.ts";
import type { Measure } from "./measure.ts";
import { medians } from "./stopwatch.ts";

const count = 10_000;

/** Ten thousand deltas of either wire from a server on this machine, as it sends them: each by itself, or some together. */
export async function modelMeasures(): Promise<readonly Measure[]> {
  return [
    ...await wireMeasures("chat completions", chat, (url) => openai({ model: "served", baseURL: url })),
    ...await wireMeasures("the messages API", messages, (url) => anthropic({ model: "served", baseURL: url })),
  ];
}

async function wireMeasures(
  name: string,
  frames: readonly string[],
  model: (url: string) => Model,
): Promise<readonly Measure[]> {
  await using single = served(frames, 1);
  await using some = served(frames, 16);
  const time = await medians({
    bare: () => cut(single.url),
    heard: () => heard(model(single.url)),
    bareTogether: () => cut(some.url),
    together: () => heard(model(some.url)),
  }, { rounds: 15, warmUp: 3 });
  return [
    { what: `10,000 deltas of ${name}, one per write`, figure: time.heard / time.bare, budget: 2, unit: "x" },
    { what: "... 16 per write", figure: time.together / time.bareTogether, budget: 2, unit: "x" },
  ];
}

/** Serves `frames`, so many with every write. */
function served(frames: readonly string[], together: number): AsyncDisposable & { readonly url: string } {
  const encoder = new TextEncoder();
  const writes = Array.from({ length: Math.ceil(frames.length / together) }, (_, index) => {
    return encoder.encode(frames.slice(index * together, (index + 1) * together).join(""));
  });
  const headers = { "content-type": "text/event-stream" };
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, () => {
    return new Response(ReadableStream.from(writes), { headers });
  });
  return { url: `http://127.0.0.1:${server.addr.port}`, [Symbol.asyncDispose]: () => server.shutdown() };
}

/** The floor: reads, decodes and splits. */
async function cut(url: string): Promise<number> {
  const { body } = await fetch(url, { method: "POST", body: "{}" });
  const decoder = new TextDecoder();
  let rest = "";
  let frames = 0;
  for await (const bytes of body ?? []) {
    const complete = (rest + decoder.decode(bytes, { stream: true })).split("\n\n");
    rest = complete.pop() ?? "";
    frames += complete.length;
  }
  return frames;
}

/** Hears an answer to its end. Throws where that is not what was served. */
async function heard(model: Model): Promise<void> {
  const request = { model, instructions: "", messages: [], tools: [], options: {} };
  let events = 0;
  for await (const read of model.stream(request, { signal: new AbortController().signal })) events += read.length;
  if (events !== count + 1) throw new Error(`Cannot measure: ${events} events were heard`);
}

/** So many times what `frame` makes of a text. */
function repeated(frame: (text: string) => object): readonly object[] {
  return Array.from({ length: count }, (_, index) => frame(texts[index % texts.length] ?? ""));
}

const chunk = {
  id: "chatcmpl-oDlE6UgqUgETw5Wa",
  object: "chat.completion.chunk",
  created: 1_795_283_127,
  model: "gpt-5",
};
const chat = [
  ...repeated((content) => ({
    ...chunk,
    choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }],
  })),
  { ...chunk, choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: "stop" }] },
].map((data) => `data: ${JSON.stringify(data)}\n\n`);

const messages = [
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  ...repeated((text) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })),
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: count } },
].map((data) => `event: message\ndata: ${JSON.stringify(data)}\n\n`);
