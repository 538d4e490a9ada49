import { agent, type Message, type ModelRequest, text, tool, user } from "@jizai/jizai";
import { anthropic, type AnthropicOptions } from "@jizai/jizai/model/anthropic";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { messagesApi } from "../support/providers/anthropic.ts";
import { key, schema, weather } from "../support/providers/api.ts";
import { readAll, recordRequests, respond, sse } from "../support/providers/sse.ts";

const done = messagesApi.textStream("Done.");

async function eventsOf(...events: Parameters<typeof sse>[0]) {
  return (await readAll(anthropic({ model: "m", fetch: respond(sse(events)) }))).flat();
}

/** Returns the HTTP request that a model request becomes. */
async function requestFor(request: Partial<ModelRequest>, options: Partial<AnthropicOptions> = {}) {
  const { sent, fetch } = recordRequests(done);
  await readAll(anthropic({ model: "m", fetch, cache: false, ...options }), request);
  return sent[0]!;
}

async function messagesFor(...messages: readonly Message[]) {
  return (await requestFor({ messages })).body.messages;
}

const mark = { cache_control: { type: "ephemeral" } };

function begin(index: number, content_block: object) {
  return { type: "content_block_start", index, content_block };
}

function grow(index: number, delta: object) {
  return { type: "content_block_delta", index, delta };
}

function stop(stop_reason: string | null, usage?: object) {
  return { type: "message_delta", delta: { stop_reason }, usage };
}

Deno.test("anthropic() sends the key and every field of the request to Anthropic", async () => {
  const { url, headers, body } = await requestFor({
    instructions: "Be kind.",
    messages: [user("Hi")],
    tools: [weather],
  }, { apiKey: key });
  assertEquals(url, "https://api.anthropic.com/v1/messages");
  assertEquals(headers, {
    "content-type": "application/json",
    "anthropic-version": "2023-06-01",
    "x-api-key": key,
  });
  assertEquals(body, {
    model: "m",
    system: [{ type: "text", text: "Be kind." }],
    messages: [{ role: "user", content: [{ type: "text", text: "Hi" }] }],
    tools: [{ name: "weather", description: "Current weather", input_schema: schema }],
    stream: true,
    max_tokens: 32_000,
  });
});

Deno.test("anthropic() leaves out a missing key, tools and instructions", async () => {
  const { headers, body } = await requestFor({ messages: [user("Hi")], options: { maxTokens: 9 } }, { maxTokens: 5 });
  assertEquals([headers["x-api-key"], body.max_tokens], [undefined, 9]);
  assertEquals(Object.keys(body), ["model", "messages", "stream", "max_tokens"]);
});

Deno.test("anthropic() merges messages into turns, with tool results first", async () => {
  const messages = await messagesFor(
    user("Weather?"),
    {
      role: "assistant",
      parts: [
        { type: "text", text: "Let me see." },
        { type: "call", id: "a", name: "weather", input: { city: "Kyoto" } },
        { type: "call", id: "functions.b:1", name: "weather", input: "Oslo", malformed: "not JSON" },
      ],
    },
    {
      role: "tool",
      results: [
        { callId: "a", name: "weather", status: "ok", parts: [{ type: "text", text: "Sunny" }] },
        { callId: "functions.b:1", name: "weather", status: "denied", parts: [] },
      ],
    },
    { role: "user", from: "inject", parts: [{ type: "text", text: "It is 9." }, { type: "text", text: " " }] },
    { role: "assistant", parts: [{ type: "text", text: "" }, { type: "reasoning", text: "Nothing came of it." }] },
    user("And now?"),
  );
  assertEquals(messages, [
    { role: "user", content: [{ type: "text", text: "Weather?" }] },
    {
      role: "assistant",
      content: [
        { type: "text", text: "Let me see." },
        { type: "tool_use", id: "a", name: "weather", input: { city: "Kyoto" } },
        { type: "tool_use", id: "functions_2eb_3a1", name: "weather", input: { input: "Oslo" } },
      ],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "a", content: [{ type: "text", text: "Sunny" }] },
        { type: "tool_result", tool_use_id: "functions_2eb_3a1", content: [], is_error: true },
        { type: "text", text: "It is 9." },
        { type: "text", text: "And now?" },
      ],
    },
  ]);
});

Deno.test("anthropic() sends images and PDFs, also in results, and a notice for other files", async () => {
  const image = { type: "media", mediaType: "image/png", data: "AA" } as const;
  const shown = { type: "image", source: { type: "base64", media_type: "image/png", data: "AA" } };
  const [asked, , answered] = await messagesFor(
    {
      role: "user",
      parts: [
        image,
        { type: "media", mediaType: "image/jpeg", url: "https://example.com/a.jpg" },
        { type: "media", mediaType: "application/pdf", url: "https://example.com/a.pdf" },
        { type: "media", mediaType: "audio/wav", data: "AA" },
      ],
    },
    { role: "assistant", parts: [{ type: "call", id: "a", name: "draw", input: {} }] },
    { role: "tool", results: [{ callId: "a", name: "draw", status: "ok", parts: [image] }] },
  );
  assertEquals(asked.content, [
    shown,
    { type: "image", source: { type: "url", url: "https://example.com/a.jpg" } },
    { type: "document", source: { type: "url", url: "https://example.com/a.pdf" } },
    { type: "text", text: "[A file of type audio/wav, which you cannot be shown.]" },
  ]);
  assertEquals(answered.content, [{ type: "tool_result", tool_use_id: "a", content: [shown] }]);
});

Deno.test("anthropic() caches the instructions and the conversation without the context of one turn", async () => {
  const messages: readonly Message[] = [
    user("Hi"),
    { role: "assistant", parts: [{ type: "text", text: "Yes?" }] },
    user("Go"),
  ];
  const request = { instructions: "Be kind.", messages: [...messages, user("It is 9.", "turn")] };
  const { body } = await requestFor(request, { cache: "5m" });
  assertEquals(body.system, [{ type: "text", text: "Be kind.", ...mark }]);
  assertEquals(body.messages, [
    { role: "user", content: [{ type: "text", text: "Hi" }] },
    { role: "assistant", content: [{ type: "text", text: "Yes?" }] },
    { role: "user", content: [{ type: "text", text: "Go", ...mark }, { type: "text", text: "It is 9." }] },
  ]);
  const hour = { cache_control: { type: "ephemeral", ttl: "1h" } };
  const long = await requestFor(request, { cache: "1h" });
  assertEquals(long.body.system, [{ type: "text", text: "Be kind.", ...hour }]);
  assertEquals(JSON.stringify((await requestFor(request)).body).includes("cache_control"), false);
});

Deno.test("anthropic() marks tool results for caching, and no assistant message", async () => {
  const call = { role: "assistant", parts: [{ type: "call", id: "a", name: "rest", input: {} }] } as const;
  const results = { role: "tool", results: [{ callId: "a", name: "rest", status: "ok", parts: [] }] } as const;
  const after = (await requestFor({ messages: [call, results] }, { cache: "5m" })).body.messages;
  assertEquals(after[1].content, [{ type: "tool_result", tool_use_id: "a", content: [], ...mark }]);
  const before = (await requestFor({ messages: [call] }, { cache: "5m" })).body.messages;
  assertEquals(before[0].content, [{ type: "tool_use", id: "a", name: "rest", input: {} }]);
  assertEquals((await requestFor({ messages: [user("")] }, { cache: "5m" })).body.messages, []);
});

Deno.test("anthropic() requests an output only for a schema that the provider enforces", async () => {
  const configFor = async (output: Record<string, unknown>) =>
    (await requestFor({ options: { output } })).body.output_config;
  assertEquals(await configFor(schema), {
    format: { type: "json_schema", schema: { ...schema, additionalProperties: false } },
  });
  assertEquals(await configFor({ type: "object", properties: { city: { type: "string" } } }), undefined);
  assertEquals(await configFor({ type: "string" }), undefined);
});

Deno.test("anthropic() sends its own reasoning back with its signature, and none of another provider", async () => {
  const { stream } = messagesApi;
  const { sent, fetch } = recordRequests(stream, done);
  const named = (name: string) =>
    tool({ name, description: "Works", input: z.looseObject({}), execute: () => text("Done") });
  const model = anthropic({ model: "m", fetch, cache: false });
  await agent({ model, tools: [named("weather"), named("rest")] }).run("Hi").result;
  assertEquals(sent[1]?.body.messages[1], {
    role: "assistant",
    content: [
      { type: "thinking", thinking: "The 鉤 hangs.", signature: "c2ln" },
      { type: "redacted_thinking", data: "ZGF0YQ" },
      { type: "text", text: "自在鉤 🪝" },
      { type: "tool_use", id: "toolu_a", name: "weather", input: { city: "京都" } },
      { type: "tool_use", id: "toolu_b", name: "rest", input: {} },
    ],
  });

  const parts = [
    { type: "reasoning", text: "Hm." },
    { type: "reasoning", text: "Hm.", meta: { model: "gpt-5", field: "reasoning_content" } },
    { type: "text", text: "So." },
  ] as const;
  assertEquals(await messagesFor({ role: "assistant", parts }), [
    { role: "assistant", content: [{ type: "text", text: "So." }] },
  ]);
});

Deno.test("anthropic() keeps the signatures of consecutive reasoning blocks, also of empty ones", async () => {
  const said = await eventsOf(
    begin(0, { type: "thinking", thinking: "", signature: "" }),
    grow(0, { type: "signature_delta", signature: "one" }),
    { type: "content_block_stop", index: 0 },
    begin(1, { type: "thinking", thinking: "Hm.", signature: "two" }),
    { type: "content_block_stop", index: 1 },
    stop("end_turn"),
  );
  assertEquals(said.slice(0, -1), [
    { type: "reasoning", text: "", meta: { signature: "one" } },
    { type: "reasoning", text: "Hm." },
    { type: "reasoning", text: "", meta: { signature: "two" } },
  ]);
});

Deno.test("anthropic() ignores pings, tools that the provider runs and unknown events", async () => {
  const said = await eventsOf(
    { type: "ping" },
    {},
    { type: "content_block_start", index: 0, content_block: null },
    grow(7, { type: "text_delta", text: "lost" }),
    { type: "content_block_stop", index: 7 },
    begin(0, { type: "server_tool_use", id: "s", name: "web_search", input: {} }),
    grow(0, { type: "input_json_delta", partial_json: "{}" }),
    { type: "content_block_stop", index: 0 },
    begin(1, { type: "text", text: "He" }),
    grow(1, { type: "text_delta", text: "llo" }),
    grow(1, { type: "citations_delta", citation: {} }),
    { type: "content_block_stop", index: 1 },
    { type: "surprise" },
    stop("pause_turn"),
    { type: "message_stop" },
    begin(2, { type: "text", text: "late" }),
  );
  assertEquals(said, [
    { type: "text", text: "He" },
    { type: "text", text: "llo" },
    { type: "finish", reason: "other", usage: { input: 0, output: 0 } },
  ]);
});

Deno.test("anthropic() reads a call with whole input, without an id or without a stop event", async () => {
  const said = await eventsOf(
    begin(0, { type: "tool_use", id: "a", name: "weather", input: { city: "Kyoto" } }),
    { type: "content_block_stop", index: 0 },
    begin(1, { type: "tool_use", name: "weather", input: {} }),
    stop("tool_use"),
    stop(null),
  );
  assertEquals(said.slice(0, -1), [
    { type: "call.start", id: "a", name: "weather" },
    { type: "call.end", id: "a", input: { city: "Kyoto" } },
    { type: "call.start", id: "call_0", name: "weather" },
    { type: "call.end", id: "call_0" },
  ]);
});

Deno.test("anthropic() maps the stop reason, also without the last frame", async () => {
  const reasons = {
    end_turn: "stop",
    stop_sequence: "stop",
    tool_use: "calls",
    max_tokens: "length",
    model_context_window_exceeded: "length",
    refusal: "filter",
    pause_turn: "other",
  } as const;
  for (const [theirs, ours] of Object.entries(reasons)) {
    assertEquals(await eventsOf(stop(theirs)), [{ type: "finish", reason: ours, usage: { input: 0, output: 0 } }]);
  }
  assertEquals(await eventsOf(stop(null)), []);
});

Deno.test("anthropic() adds cached tokens to the input and uses the last count of each", async () => {
  const usage = { input_tokens: 3, output_tokens: 1, cache_read_input_tokens: 40, cache_creation_input_tokens: 500 };
  assertEquals(await eventsOf({ type: "message_start", message: { usage } }, stop("end_turn", { output_tokens: 9 })), [
    { type: "finish", reason: "stop", usage: { input: 543, output: 9, cached: 40 } },
  ]);
});
