/**
 * The Responses API, as OpenAI streams it.
 *
 * @module
 */
import { openaiResponses } from "@jizai/jizai/model/openai_responses";
import { key, type ProviderApi } from "./api.ts";
import { sse } from "./sse.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Encodes a response of these events, numbered, between its first and its last event. */
export function responseStream(events: readonly Fields[], last: Fields = {}): string {
  const response = { id: "resp_1", object: "response", created_at: 1_700_000_000, model: "gpt-5", error: null };
  const all = [
    { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
    { type: "response.in_progress", response: { ...response, status: "in_progress", output: [] } },
    ...events,
    {
      type: "response.completed",
      response: { ...response, status: "completed", incomplete_details: null, output: [], usage: usage(7, 7), ...last },
    },
  ];
  return sse(all.map((event, index) => ({ ...event, sequence_number: index })));
}

/** Token counts. */
export function usage(input: number, output: number, cached = 0): Fields {
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + output,
  };
}

/** The events of a message with these deltas. */
export function message(output_index: number, ...deltas: readonly string[]): readonly Fields[] {
  const at = { output_index, item_id: `msg_${output_index}`, content_index: 0 };
  const item = { type: "message", id: at.item_id, role: "assistant", status: "in_progress", content: [] };
  const text = deltas.join("");
  const part = { type: "output_text", text, annotations: [] };
  return [
    { type: "response.output_item.added", output_index, item },
    { type: "response.content_part.added", ...at, part: { ...part, text: "" } },
    ...deltas.map((delta) => ({ type: "response.output_text.delta", ...at, delta })),
    { type: "response.output_text.done", ...at, text },
    { type: "response.content_part.done", ...at, part },
    { type: "response.output_item.done", output_index, item: { ...item, status: "completed", content: [part] } },
  ];
}

/** The events of a call with these deltas of its arguments. */
export function functionCall(
  output_index: number,
  call_id: string,
  name: string,
  ...deltas: readonly string[]
): readonly Fields[] {
  const item_id = `fc_${call_id}`;
  const item = { type: "function_call", id: item_id, call_id, name, arguments: "", status: "in_progress" };
  const input = deltas.join("");
  return [
    { type: "response.output_item.added", output_index, item },
    ...deltas.map((delta) => ({ type: "response.function_call_arguments.delta", item_id, output_index, delta })),
    { type: "response.function_call_arguments.done", item_id, output_index, arguments: input },
    { type: "response.output_item.done", output_index, item: { ...item, status: "completed", arguments: input } },
  ];
}

/** A reasoning item with its encrypted content. */
export const reasoningItem = {
  id: "rs_1",
  type: "reasoning",
  summary: [{ type: "summary_text", text: "The 鉤 hangs." }],
  encrypted_content: "Z0FBQUFB",
};

/** The events of {@linkcode reasoningItem}. */
export const reasoning: readonly Fields[] = [
  {
    type: "response.output_item.added",
    output_index: 0,
    item: { id: "rs_1", type: "reasoning", summary: [], encrypted_content: "Z0FB" },
  },
  {
    type: "response.reasoning_summary_part.added",
    item_id: "rs_1",
    output_index: 0,
    summary_index: 0,
    part: { type: "summary_text", text: "" },
  },
  ...["The 鉤 ", "hangs."].map((delta) => ({
    type: "response.reasoning_summary_text.delta",
    item_id: "rs_1",
    output_index: 0,
    summary_index: 0,
    delta,
  })),
  {
    type: "response.reasoning_summary_text.done",
    item_id: "rs_1",
    output_index: 0,
    summary_index: 0,
    text: "The 鉤 hangs.",
  },
  { type: "response.output_item.done", output_index: 0, item: reasoningItem },
];

/** The Responses API. */
export const responsesApi: ProviderApi = {
  name: "openaiResponses()",
  model: (options) => openaiResponses({ model: "gpt-5", apiKey: key, ...options }),
  path: "/responses",
  stream: responseStream([
    ...reasoning,
    ...message(1, "自在", "鉤 🪝"),
    ...functionCall(2, "call_a", "weather", '{"city":', '"京都"}'),
    ...functionCall(3, "call_b", "weather", '{"city":"Oslo"}'),
  ]),
  events: [
    { type: "reasoning", text: "The 鉤 " },
    { type: "reasoning", text: "hangs." },
    { type: "reasoning", text: "", meta: { model: "gpt-5", item: reasoningItem } },
    { type: "text", text: "自在" },
    { type: "text", text: "鉤 🪝" },
    { type: "call.start", id: "call_a", name: "weather" },
    { type: "call.delta", id: "call_a", text: '{"city":' },
    { type: "call.delta", id: "call_a", text: '"京都"}' },
    { type: "call.end", id: "call_a" },
    { type: "call.start", id: "call_b", name: "weather" },
    { type: "call.delta", id: "call_b", text: '{"city":"Oslo"}' },
    { type: "call.end", id: "call_b" },
    { type: "finish", reason: "calls", usage: { input: 7, output: 7 }, id: "resp_1" },
  ],
  finished: /"type":"response\.completed"/,
  textStream: (...texts) => responseStream(message(0, ...texts)),
  callStream: (input) => responseStream(functionCall(0, "call_a", "weather", input)),
  overloadedFrame: sse([{
    type: "error",
    code: "server_is_overloaded",
    message: "Overloaded",
    param: null,
    sequence_number: 9,
  }]),
  temperatureIn: ({ temperature }) => temperature,
  inputIn: ({ input }) => JSON.parse(input[1].arguments),
};
