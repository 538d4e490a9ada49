/**
 * The wires of the two vendors: what they stream, and models that hear it.
 *
 * @module
 */
import type { Model, ModelEvent, ModelRequest } from "@jizai/jizai";
import { anthropic, type ProviderOptions } from "@jizai/jizai/model/anthropic";
import { openai } from "@jizai/jizai/model/openai";

/** A key that has to stay where it is. */
export const key = "sk-secret-0123456789";

/** What a tool of requests takes. */
export const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

/** That tool, whose schema says of which draft it is. */
export const weather = { name: "weather", description: "Current weather", schema: { $schema: "draft", ...schema } };

/** A wire. */
export interface Wire {
  readonly name: string;
  /** A model that is asked over it. */
  readonly model: (options?: Partial<ProviderOptions>) => Model;
  /** The path of its requests. */
  readonly path: string;
  /** An answer as the vendor documents it: thought, text, and two calls at once. */
  readonly stream: string;
  /** What it says. */
  readonly events: readonly ModelEvent[];
  /** An answer of these texts, a frame each. */
  readonly saying: (...texts: readonly string[]) => string;
  /** An answer that calls `weather` with this as its arguments. */
  readonly calling: (input: string) => string;
  /** A frame in which the vendor breaks off, since it is overloaded. */
  readonly overloaded: string;
}

/** Frames, named by their type where they have one. */
export function frames(values: readonly Readonly<Record<string, unknown>>[], end = ""): string {
  return values.map((value) => {
    const name = typeof value.type === "string" ? `event: ${value.type}\n` : "";
    return `${name}data: ${JSON.stringify(value)}\n\n`;
  }).join("") + end;
}

/** What a frame of chat completions says: a delta, why it ends, or the tokens. */
export type Said = object | string | number;

/** Frames of chat completions, and their end. */
export function chunks(...said: readonly Said[]): string {
  const chunk = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1_700_000_000, model: "gpt-5" };
  return frames(
    said.map((each) =>
      typeof each === "number"
        ? { ...chunk, choices: [], usage: { prompt_tokens: each, completion_tokens: each } }
        : typeof each === "string"
        ? { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: each }] }
        : { ...chunk, choices: [{ index: 0, delta: each, finish_reason: null }] }
    ),
    "data: [DONE]\n\n",
  );
}

const overChat: Wire = {
  name: "openai()",
  model: (options) => openai({ model: "gpt-5", apiKey: key, ...options }),
  path: "/chat/completions",
  stream: ": processing\n\n" + chunks(
    { role: "assistant", content: null, refusal: null },
    { reasoning_content: "The 鉤 " },
    { reasoning_content: "hangs." },
    { content: "自在" },
    { content: "鉤 🪝" },
    { tool_calls: [{ index: 0, id: "call_a", type: "function", function: { name: "weather", arguments: "" } }] },
    { tool_calls: [{ index: 0, function: { arguments: '{"city":' } }] },
    { tool_calls: [{ index: 1, id: "call_b", type: "function", function: { name: "weather", arguments: "" } }] },
    { tool_calls: [{ index: 1, function: { arguments: '{"city":"Oslo"}' } }] },
    { tool_calls: [{ index: 0, function: { arguments: '"京都"}' } }] },
    "tool_calls",
    7,
  ),
  events: [
    { type: "reasoning", text: "The 鉤 " },
    { type: "reasoning", text: "hangs." },
    { type: "reasoning", text: "", meta: { model: "gpt-5", field: "reasoning_content" } },
    { type: "text", text: "自在" },
    { type: "text", text: "鉤 🪝" },
    { type: "call.start", id: "call_a", name: "weather" },
    { type: "call.delta", id: "call_a", text: '{"city":' },
    { type: "call.start", id: "call_b", name: "weather" },
    { type: "call.delta", id: "call_b", text: '{"city":"Oslo"}' },
    { type: "call.delta", id: "call_a", text: '"京都"}' },
    { type: "call.end", id: "call_a" },
    { type: "call.end", id: "call_b" },
    { type: "finish", reason: "calls", usage: { input: 7, output: 7 } },
  ],
  saying: (...texts) => chunks(...texts.map((content) => ({ content })), "stop"),
  calling: (input) =>
    chunks({ tool_calls: [{ index: 0, id: "call_a", function: { name: "weather", arguments: input } }] }, "tool_calls"),
  overloaded: frames([{ error: { message: "Overloaded", type: "server_error", code: null } }]),
};

const overMessages: Wire = {
  name: "anthropic()",
  model: (options) => anthropic({ model: "claude", apiKey: key, ...options }),
  path: "/v1/messages",
  stream: frames([
    {
      type: "message_start",
      message: { id: "msg_1", content: [], usage: { input_tokens: 3, cache_read_input_tokens: 4 } },
    },
    { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "The 鉤 hangs." } },
    { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "c2ln" } },
    { type: "content_block_stop", index: 0 },
    { type: "ping" },
    { type: "content_block_start", index: 1, content_block: { type: "redacted_thinking", data: "ZGF0YQ" } },
    { type: "content_block_stop", index: 1 },
    { type: "content_block_start", index: 2, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 2, delta: { type: "text_delta", text: "自在" } },
    { type: "content_block_delta", index: 2, delta: { type: "text_delta", text: "鉤 🪝" } },
    { type: "content_block_stop", index: 2 },
    {
      type: "content_block_start",
      index: 3,
      content_block: { type: "tool_use", id: "toolu_a", name: "weather", input: {} },
    },
    { type: "content_block_delta", index: 3, delta: { type: "input_json_delta", partial_json: "" } },
    { type: "content_block_delta", index: 3, delta: { type: "input_json_delta", partial_json: '{"city":' } },
    { type: "content_block_delta", index: 3, delta: { type: "input_json_delta", partial_json: '"京都"}' } },
    { type: "content_block_stop", index: 3 },
    {
      type: "content_block_start",
      index: 4,
      content_block: { type: "tool_use", id: "toolu_b", name: "rest", input: {} },
    },
    { type: "content_block_stop", index: 4 },
    { type: "message_delta", delta: { stop_reason: "tool_use", stop_sequence: null }, usage: { output_tokens: 7 } },
    { type: "message_stop" },
  ]),
  events: [
    { type: "reasoning", text: "The 鉤 hangs." },
    { type: "reasoning", text: "", meta: { signature: "c2ln" } },
    { type: "reasoning", text: "", meta: { redacted: "ZGF0YQ" } },
    { type: "text", text: "自在" },
    { type: "text", text: "鉤 🪝" },
    { type: "call.start", id: "toolu_a", name: "weather" },
    { type: "call.delta", id: "toolu_a", text: '{"city":' },
    { type: "call.delta", id: "toolu_a", text: '"京都"}' },
    { type: "call.end", id: "toolu_a" },
    { type: "call.start", id: "toolu_b", name: "rest" },
    { type: "call.end", id: "toolu_b" },
    { type: "finish", reason: "calls", usage: { input: 7, output: 7, cached: 4 } },
  ],
  saying: (...texts) =>
    frames([
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      ...texts.map((text) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })),
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "end_turn" } },
      { type: "message_stop" },
    ]),
  calling: (input) =>
    frames([
      { type: "content_block_start", index: 0, content_block: { type: "tool_use", id: "toolu_a", name: "weather" } },
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: input } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "tool_use" } },
      { type: "message_stop" },
    ]),
  overloaded: frames([
    { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
  ]),
};

/** Both. */
export const wires: readonly Wire[] = [overChat, overMessages];

/** The frames of `stream` up to and with the first that holds `text`. */
export function upTo(text: string, stream: string): string {
  return stream.slice(0, stream.indexOf("\n\n", stream.indexOf(text)) + 2);
}

/** An answer that comes in these pieces: `fetch` for a model. A failure among them cuts it. */
export function answering(...pieces: readonly (string | Uint8Array | Error)[]): () => Response {
  const encoder = new TextEncoder();
  return () => {
    let next = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        const piece = pieces[next++];
        if (piece === undefined) controller.close();
        else if (piece instanceof Error) controller.error(piece);
        else controller.enqueue(typeof piece === "string" ? encoder.encode(piece) : piece);
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };
}

/** What a model says to a request, read by read. */
export async function reads(
  model: Model,
  request: Partial<ModelRequest> = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<(readonly ModelEvent[])[]> {
  const whole = { model, instructions: "", messages: [], tools: [], options: {}, ...request };
  return await Array.fromAsync(model.stream(whole, { signal }));
}

/** A request as it was sent. */
export interface Sent {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  // deno-lint-ignore no-explicit-any -- tests compare it as a whole
  readonly body: any;
}

/** Answers with one stream after another, the last of them again and again; and keeps what was asked. */
export function recording(...streams: readonly string[]) {
  const sent: Sent[] = [];
  function fetch(url: string, { headers, body }: RequestInit): Response {
    sent.push({ url, headers: Object.fromEntries(new Headers(headers)), body: JSON.parse(String(body)) });
    return answering(streams[sent.length - 1] ?? streams.at(-1) ?? "")();
  }
  return { sent, fetch };
}

/** What is thrown; fails where nothing is. */
export async function thrown(work: Promise<unknown>): Promise<unknown> {
  return await work.then(() => {
    throw new Error("Nothing was thrown");
  }, (error) => error);
}
