/**
 * Chat completions, as OpenAI streams them.
 *
 * @module
 */
import { openai } from "@jizai/jizai/model/openai";
import { key, type ProviderApi } from "./api.ts";
import { sse } from "./sse.ts";

/** The content of a frame: a delta, a finish reason, or a token count. */
export type ChatDelta = object | string | number;

/** Encodes a response of chat completions. */
export function chatStream(...deltas: readonly ChatDelta[]): string {
  const chunk = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1_700_000_000, model: "gpt-5" };
  return sse(
    deltas.map((each) =>
      typeof each === "number"
        ? { ...chunk, choices: [], usage: { prompt_tokens: each, completion_tokens: each } }
        : typeof each === "string"
        ? { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: each }] }
        : { ...chunk, choices: [{ index: 0, delta: each, finish_reason: null }] }
    ),
    "data: [DONE]\n\n",
  );
}

/** Chat completions. */
export const chatCompletions: ProviderApi = {
  name: "openai()",
  model: (options) => openai({ model: "gpt-5", apiKey: key, ...options }),
  path: "/chat/completions",
  stream: ": processing\n\n" + chatStream(
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
    { type: "finish", reason: "calls", usage: { input: 7, output: 7 }, id: "chatcmpl-1" },
  ],
  finished: /"finish_reason":"/,
  textStream: (...texts) => chatStream(...texts.map((content) => ({ content })), "stop"),
  callStream: (input) =>
    chatStream(
      { tool_calls: [{ index: 0, id: "call_a", function: { name: "weather", arguments: input } }] },
      "tool_calls",
    ),
  overloadedFrame: sse([{ error: { message: "Overloaded", type: "server_error", code: null } }]),
  temperatureIn: ({ temperature }) => temperature,
  inputIn: ({ messages }) => JSON.parse(messages[1].tool_calls[0].function.arguments),
};
