/**
 * The messages API, as Anthropic streams it.
 *
 * @module
 */
import { anthropic } from "@jizai/jizai/model/anthropic";
import { key, type ProviderApi } from "./api.ts";
import { sse } from "./sse.ts";

/** The messages API. */
export const messagesApi: ProviderApi = {
  name: "anthropic()",
  model: (options) => anthropic({ model: "claude", apiKey: key, ...options }),
  path: "/v1/messages",
  stream: sse([
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
    { type: "finish", reason: "calls", usage: { input: 7, output: 7, cached: 4 }, id: "msg_1" },
  ],
  finished: /"stop_reason":"/,
  textStream: (...texts) =>
    sse([
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      ...texts.map((text) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })),
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "end_turn" } },
      { type: "message_stop" },
    ]),
  callStream: (input) =>
    sse([
      { type: "content_block_start", index: 0, content_block: { type: "tool_use", id: "toolu_a", name: "weather" } },
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: input } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "tool_use" } },
      { type: "message_stop" },
    ]),
  overloadedFrame: sse([
    { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
  ]),
  temperatureIn: ({ temperature }) => temperature,
  inputIn: ({ messages }) => messages[1].content[0].input,
};
