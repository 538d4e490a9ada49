/**
 * Streams of chat completions, of OpenAI and of compatible servers.
 *
 * @module
 */
import { type CorpusCase, dataFrames } from "./case.ts";

const reference = "https://platform.openai.com/docs/api-reference/chat-streaming";
const functionCalling = "https://platform.openai.com/docs/guides/function-calling";
const done = "data: [DONE]\n\n";

/** A chunk of OpenAI with one choice. */
function chunk(delta: object, finish_reason: string | null = null, more: object = {}): object {
  return {
    id: "chatcmpl-123",
    object: "chat.completion.chunk",
    created: 1_694_268_190,
    model: "gpt-5",
    system_fingerprint: "fp_44709d6fcb",
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    ...more,
  };
}

/** A delta of one call. */
function call(index: number, args: string, id?: string, name?: string): object {
  const begun = id === undefined ? {} : { id, type: "function" };
  return { tool_calls: [{ index, ...begun, function: { ...(name && { name }), arguments: args } }] };
}

const usage = { prompt_tokens: 19, completion_tokens: 10, total_tokens: 29 };

/** The cases. */
export const chatCompletionsCorpus: readonly CorpusCase[] = [
  {
    name: "a text",
    source: reference,
    stream: dataFrames([
      chunk({ role: "assistant", content: "", refusal: null }),
      chunk({ content: "Hello" }),
      chunk({ content: "! How can I help?" }),
      chunk({}, "stop"),
    ], done),
    expected: { text: "Hello! How can I help?", calls: [], finish: "stop" },
  },
  {
    name: "token counts in a last chunk without choices",
    source: reference,
    stream: dataFrames([
      chunk({ role: "assistant", content: "" }, null, { usage: null }),
      chunk({ content: "Hi" }, null, { usage: null }),
      chunk({}, "stop", { usage: null }),
      chunk({}, null, { choices: [], usage: { ...usage, prompt_tokens_details: { cached_tokens: 5 } } }),
    ], done),
    expected: { text: "Hi", calls: [], finish: "stop" },
  },
  {
    name: "obfuscation fields",
    source: reference,
    stream: dataFrames([
      chunk({ role: "assistant", content: "" }, null, { obfuscation: "aX9" }),
      chunk({ content: "pad" }, null, { obfuscation: "zzTop01" }),
      chunk({ content: "ded" }, null, { obfuscation: "q" }),
      chunk({}, "stop", { obfuscation: "" }),
    ], done),
    expected: { text: "padded", calls: [], finish: "stop" },
  },
  {
    name: "one call",
    source: functionCalling,
    stream: dataFrames([
      chunk({ role: "assistant", content: null, ...call(0, "", "call_DdmO9pD3xa9XTPNJ32zg2hcA", "get_weather") }),
      ...['{"', "location", '":"', "Paris", ", France", '"}'].map((args) => chunk(call(0, args))),
      chunk({}, "tool_calls"),
    ], done),
    expected: { text: "", calls: [["get_weather", { location: "Paris, France" }]], finish: "calls" },
  },
  {
    name: "two parallel calls, interleaved",
    source: functionCalling,
    stream: dataFrames([
      chunk({ role: "assistant", content: null }),
      chunk(call(0, "", "call_a", "get_weather")),
      chunk(call(0, '{"location":')),
      chunk(call(1, "", "call_b", "get_weather")),
      chunk(call(1, '{"location": "Bogotá"}')),
      chunk(call(0, ' "Paris"}')),
      chunk({}, "tool_calls"),
    ], done),
    expected: {
      text: "",
      calls: [["get_weather", { location: "Paris" }], ["get_weather", { location: "Bogotá" }]],
      finish: "calls",
    },
  },
  {
    name: "a text before a call",
    source: functionCalling,
    stream: dataFrames([
      chunk({ role: "assistant", content: "Let me look." }),
      chunk(call(0, "{}", "call_a", "list_files")),
      chunk({}, "tool_calls"),
    ], done),
    expected: { text: "Let me look.", calls: [["list_files", {}]], finish: "calls" },
  },
  {
    name: "a refusal",
    source: "https://platform.openai.com/docs/guides/structured-outputs#refusals",
    stream: dataFrames([
      chunk({ role: "assistant", content: null, refusal: "" }),
      chunk({ refusal: "I'm sorry, I cannot" }),
      chunk({ refusal: " assist with that." }),
      chunk({}, "stop"),
    ], done),
    expected: { text: "I'm sorry, I cannot assist with that.", calls: [], finish: "filter" },
  },
  {
    name: "a response that reaches its token limit",
    source: reference,
    stream: dataFrames([chunk({ role: "assistant", content: "Once upon" }), chunk({}, "length")], done),
    expected: { text: "Once upon", calls: [], finish: "length" },
  },
  {
    name: "a content filter, with annotations of Azure before the first choice",
    source: "https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-streaming",
    stream: dataFrames([
      { id: "", object: "", created: 0, model: "", choices: [], prompt_filter_results: [{ prompt_index: 0 }] },
      chunk({ role: "assistant", content: "" }),
      chunk({ content: "I" }, null),
      chunk({}, "content_filter"),
    ], done),
    expected: { text: "I", calls: [], finish: "filter" },
  },
  {
    name: "reasoning in reasoning_content",
    source: "https://api-docs.deepseek.com/guides/reasoning_model",
    stream: dataFrames([
      chunk({ role: "assistant", content: null, reasoning_content: "" }),
      chunk({ content: null, reasoning_content: "9.11 or 9.8? " }),
      chunk({ content: null, reasoning_content: "9.8." }),
      chunk({ content: "9.8 is greater.", reasoning_content: null }),
      chunk({ content: "", reasoning_content: null }, "stop", { usage }),
    ], done),
    expected: { text: "9.8 is greater.", calls: [], finish: "stop", reasoning: "9.11 or 9.8? 9.8." },
  },
  {
    name: "reasoning in reasoning, after comments that keep the connection open",
    source: "https://openrouter.ai/docs/api-reference/streaming",
    stream: ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + dataFrames([
      chunk({ role: "assistant", content: "", reasoning: "Let me " }, null, { provider: "Together" }),
      chunk({ role: "assistant", content: "", reasoning: "think." }, null, { provider: "Together" }),
      chunk({ role: "assistant", content: "Yes." }, null, { provider: "Together" }),
      chunk({ role: "assistant", content: "" }, "stop", { provider: "Together" }),
    ], done),
    expected: { text: "Yes.", calls: [], finish: "stop", reasoning: "Let me think." },
  },
  {
    name: "a whole call in one chunk, with the token counts of Groq",
    source: "https://console.groq.com/docs/tool-use",
    stream: dataFrames([
      chunk({ role: "assistant", content: null }, null, { x_groq: { id: "req_01" } }),
      chunk(call(0, '{"expression":"25 * 4"}', "call_d5wg", "calculate")),
      chunk({}, "tool_calls", { x_groq: { id: "req_01", usage } }),
    ], done),
    expected: { text: "", calls: [["calculate", { expression: "25 * 4" }]], finish: "calls" },
  },
  {
    name: "a call that ends with stop",
    source: "https://github.com/ollama/ollama/blob/main/docs/openai.md",
    stream: dataFrames([
      chunk({ role: "assistant", content: "", ...call(0, '{"city":"Oslo"}', "call_xyz", "weather") }),
      chunk({ role: "assistant", content: "" }, "stop"),
    ], done),
    expected: { text: "", calls: [["weather", { city: "Oslo" }]], finish: "calls" },
  },
];
