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
    expected: { text: "I'm sorry, I cannot assist with that.", calls: [], finish: "refusal" },
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
  {
    name: "log probabilities",
    source: `${reference}#chat_streaming-choices-logprobs`,
    stream: dataFrames([
      chunk({ role: "assistant", content: "" }),
      {
        ...chunk({}),
        choices: [{
          index: 0,
          delta: { content: "Yes" },
          logprobs: {
            content: [{ token: "Yes", logprob: -0.01, bytes: [89, 101, 115], top_logprobs: [] }],
            refusal: null,
          },
          finish_reason: null,
        }],
      },
      chunk({}, "stop"),
    ], done),
    expected: { text: "Yes", calls: [], finish: "stop" },
  },
  {
    name: "a character in two chunks",
    source: reference,
    stream: dataFrames([
      chunk({ role: "assistant", content: "" }),
      chunk({ content: "Hi \ud83d" }),
      chunk({ content: "\ude00!" }),
      chunk({}, "stop"),
    ], done),
    expected: { text: "Hi \u{1f600}!", calls: [], finish: "stop" },
  },
  {
    name: "citations of xAI in the last chunk, after reasoning",
    source: "https://docs.x.ai/docs/guides/live-search",
    stream: dataFrames([
      chunk({ role: "assistant", reasoning_content: "Search." }),
      chunk({ content: "It rains." }),
      chunk({}, "stop", { citations: ["https://example.com/rain"], usage }),
    ], done),
    expected: { text: "It rains.", calls: [], finish: "stop", reasoning: "Search." },
  },
  {
    name: "search results of Perplexity in every chunk",
    source: "https://docs.perplexity.ai/guides/streaming-responses",
    stream: dataFrames([
      chunk({ role: "assistant", content: "Oslo" }, null, {
        search_results: [{ title: "Oslo", url: "https://no.no" }],
      }),
      chunk({ content: " [1]." }, "stop", { search_results: [{ title: "Oslo", url: "https://no.no" }], usage }),
    ]),
    expected: { text: "Oslo [1].", calls: [], finish: "stop" },
  },
  {
    name: "token counts of vLLM in every chunk, and its stop reason",
    source: "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
    stream: dataFrames([
      chunk({ role: "assistant", content: "" }, null, { usage: { ...usage, completion_tokens: 0 } }),
      chunk({ content: "Hello" }, null, { usage }),
      {
        ...chunk({}),
        choices: [{ index: 0, delta: { content: "" }, logprobs: null, finish_reason: "stop", stop_reason: "\n\n" }],
        usage,
      },
      chunk({}, null, { choices: [], usage }),
    ], done),
    expected: { text: "Hello", calls: [], finish: "stop" },
  },
  {
    name: "two whole calls in one chunk with the finish reason, as Mistral sends them",
    source: "https://docs.mistral.ai/capabilities/function_calling",
    stream: dataFrames([
      chunk({ role: "assistant", content: "" }),
      chunk(
        {
          content: "",
          tool_calls: [
            {
              id: "D681PevKs",
              index: 0,
              type: "function",
              function: { name: "get_status", arguments: '{"id": "T1001"}' },
            },
            {
              id: "Zq2vL9aXw",
              index: 1,
              type: "function",
              function: { name: "get_date", arguments: '{"id": "T1001"}' },
            },
          ],
        },
        "tool_calls",
        { usage },
      ),
    ], done),
    expected: {
      text: "",
      calls: [["get_status", { id: "T1001" }], ["get_date", { id: "T1001" }]],
      finish: "calls",
    },
  },
];
