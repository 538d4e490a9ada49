/**
 * The cost of a model adapter, relative to reading the same bytes, splitting them into frames and parsing each frame.
 *
 * @module
 */
import type { Model } from "@jizai/jizai";
import { anthropic } from "@jizai/jizai/model/anthropic";
import { gemini } from "@jizai/jizai/model/gemini";
import { openai } from "@jizai/jizai/model/openai";
import { openaiResponses } from "@jizai/jizai/model/openai_responses";
import { texts } from "../kit/floor.ts";
import type { Measure } from "../kit/measure.ts";
import { medians } from "../kit/stopwatch.ts";

const count = 10_000;

/** Reads ten thousand deltas of each provider's API from a server on this machine, one or 16 per write. */
export async function modelMeasures(): Promise<readonly Measure[]> {
  return [
    ...await apiMeasures("chat completions", chat, (url) => openai({ model: "served", baseURL: url })),
    ...await apiMeasures("the messages API", messages, (url) => anthropic({ model: "served", baseURL: url })),
    ...await apiMeasures("the Responses API", responses, (url) => openaiResponses({ model: "served", baseURL: url })),
    ...await apiMeasures("the Gemini API", contents, (url) => gemini({ model: "served", baseURL: url })),
  ];
}

async function apiMeasures(
  name: string,
  frames: readonly string[],
  model: (url: string) => Model,
): Promise<readonly Measure[]> {
  await using single = provider(frames, 1);
  await using batched = provider(frames, 16);
  const time = await medians({
    floor: () => parseAll(single.url),
    single: () => readAll(model(single.url)),
    floorBatched: () => parseAll(batched.url),
    batched: () => readAll(model(batched.url)),
  }, { rounds: 15, warmUp: 3 });
  return [
    {
      what: `10,000 deltas of ${name}, one per write, of the floor`,
      figure: time.single / time.floor,
      atMost: 1.3,
      unit: "x",
    },
    { what: "... 16 per write", figure: time.batched / time.floorBatched, atMost: 1.3, unit: "x" },
  ];
}

/** Serves `frames`, `perWrite` of them with each write. */
function provider(frames: readonly string[], perWrite: number): AsyncDisposable & { readonly url: string } {
  const encoder = new TextEncoder();
  const writes = Array.from({ length: Math.ceil(frames.length / perWrite) }, (_, index) => {
    return encoder.encode(frames.slice(index * perWrite, (index + 1) * perWrite).join(""));
  });
  const headers = { "content-type": "text/event-stream" };
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, () => {
    return new Response(ReadableStream.from(writes), { headers });
  });
  return { url: `http://127.0.0.1:${server.addr.port}`, [Symbol.asyncDispose]: () => server.shutdown() };
}

/** The floor: reads, decodes, splits and parses. */
async function parseAll(url: string): Promise<number> {
  const { body } = await fetch(url, { method: "POST", body: "{}" });
  const decoder = new TextDecoder();
  let rest = "";
  let frames = 0;
  for await (const bytes of body ?? []) {
    const complete = (rest + decoder.decode(bytes, { stream: true })).split("\n\n");
    rest = complete.pop() ?? "";
    for (const frame of complete) {
      JSON.parse(frame.slice(frame.indexOf("data: ") + 6));
      frames++;
    }
  }
  return frames;
}

/** Reads a model's answer to its end. Throws if events are missing. */
async function readAll(model: Model): Promise<void> {
  const request = { model, instructions: "", messages: [], tools: [], options: {} };
  let events = 0;
  for await (const read of model.stream(request, { signal: new AbortController().signal })) events += read.length;
  if (events !== count + 1) throw new Error(`Cannot measure: expected ${count + 1} events, got ${events}`);
}

/** Returns the frames of all deltas. */
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

const responses = [
  ...repeated((delta) => ({
    type: "response.output_text.delta",
    item_id: "msg_1",
    output_index: 0,
    delta,
    logprobs: [],
  })),
  { type: "response.completed", response: { status: "completed", usage: { input_tokens: 9, output_tokens: count } } },
].map((data, index) => `event: message\ndata: ${JSON.stringify({ ...data, sequence_number: index })}\n\n`);

const contents = [
  ...repeated((text) => ({ content: { parts: [{ text }], role: "model" }, index: 0 })),
  { content: { parts: [{ text: "" }], role: "model" }, index: 0, finishReason: "STOP" },
].map((candidate, index) => {
  const usageMetadata = { promptTokenCount: 9, candidatesTokenCount: index, totalTokenCount: 9 + index };
  return `data: ${JSON.stringify({ candidates: [candidate], usageMetadata, modelVersion: "gemini-3-flash" })}\n\n`;
});
