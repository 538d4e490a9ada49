import { agent, type Message, type ModelRequest, text, tool, user } from "@jizai/jizai";
import { anthropic, type AnthropicOptions } from "@jizai/jizai/model/anthropic";
import { providerTool } from "@jizai/jizai/provider_tools";
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

Deno.test("anthropic() lets a person begin a conversation that begins with an assistant's greeting", async () => {
  const greeting: Message = { role: "assistant", parts: [{ type: "text", text: "Hello!" }] };
  for (const before of [[], [user(" ")]]) {
    const { body } = await requestFor({ messages: [...before, greeting, user("Hi")] });
    const turns = body.messages.map(({ role, content }: { role: string; content: { text: string }[] }) => [
      role,
      ...content.map(({ text }) => text),
    ]);
    assertEquals(turns, [
      ["user", "[The conversation begins with your message.]"],
      ["assistant", "Hello!"],
      ["user", "Hi"],
    ]);
  }
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

Deno.test("anthropic() caches the instructions and the conversation, up to now and up to the previous turn, without the context of one turn", async () => {
  const messages: readonly Message[] = [
    user("Hi"),
    { role: "assistant", parts: [{ type: "text", text: "Yes?" }] },
    user("Go"),
  ];
  const request = { instructions: "Be kind.", messages: [...messages, user("It is 9.", "turn")] };
  const { body } = await requestFor(request, { cache: "5m" });
  assertEquals(body.system, [{ type: "text", text: "Be kind.", ...mark }]);
  assertEquals(body.messages, [
    { role: "user", content: [{ type: "text", text: "Hi", ...mark }] },
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
  const received = await eventsOf(
    begin(0, { type: "thinking", thinking: "", signature: "" }),
    grow(0, { type: "signature_delta", signature: "one" }),
    { type: "content_block_stop", index: 0 },
    begin(1, { type: "thinking", thinking: "Hm.", signature: "two" }),
    { type: "content_block_stop", index: 1 },
    stop("end_turn"),
  );
  assertEquals(received.slice(0, -1), [
    { type: "reasoning", text: "", meta: { signature: "one" } },
    { type: "reasoning", text: "Hm." },
    { type: "reasoning", text: "", meta: { signature: "two" } },
  ]);
});

Deno.test("anthropic() ignores pings and unknown events", async () => {
  const received = await eventsOf(
    { type: "ping" },
    {},
    { type: "content_block_start", index: 0, content_block: null },
    { type: "content_block_stop", index: 7 },
    begin(1, { type: "text", text: "He" }),
    grow(1, { type: "text_delta", text: "llo" }),
    { type: "content_block_stop", index: 1 },
    { type: "surprise" },
    stop("pause_turn"),
    { type: "message_stop" },
    begin(2, { type: "text", text: "late" }),
  );
  assertEquals(received, [
    { type: "text", text: "He" },
    { type: "text", text: "llo" },
    { type: "finish", reason: "other", usage: { input: 0, output: 0 } },
  ]);
});

Deno.test("anthropic() reads a call with whole input, without an id or without a stop event", async () => {
  const received = await eventsOf(
    begin(0, { type: "tool_use", id: "a", name: "weather", input: { city: "Kyoto" } }),
    { type: "content_block_stop", index: 0 },
    begin(1, { type: "tool_use", name: "weather", input: {} }),
    stop("tool_use"),
    stop(null),
  );
  assertEquals(received.slice(0, -1), [
    { type: "call.start", id: "a", name: "weather" },
    { type: "call.end", id: "a", input: { city: "Kyoto" } },
    { type: "call.start", id: "call_0", name: "weather" },
    { type: "call.end", id: "call_0" },
  ]);
});

Deno.test("anthropic() reads blocks whose start or stop is missing, and an input that is JSON text", async () => {
  const received = await eventsOf(
    grow(0, { type: "thinking_delta", thinking: "Hm." }),
    grow(0, { type: "signature_delta", signature: "c2ln" }),
    begin(0, { type: "text", text: "" }),
    grow(0, { type: "text_delta", text: "He" }),
    { type: "content_block_stop", index: 0 },
    grow(1, { type: "text_delta", text: "llo" }),
    begin(1, { type: "tool_use", id: "a", name: "weather", input: '{"city":"Kyoto"}' }),
    begin(1, { type: "tool_use", id: "b", name: "weather", input: {} }),
    grow(1, { type: "input_json_delta", partial_json: '{"city":"Oslo"}' }),
    { type: "message_stop" },
  );
  assertEquals(received, [
    { type: "reasoning", text: "Hm." },
    { type: "reasoning", text: "", meta: { signature: "c2ln" } },
    { type: "text", text: "He" },
    { type: "text", text: "llo" },
    { type: "call.start", id: "a", name: "weather" },
    { type: "call.delta", id: "a", text: '{"city":"Kyoto"}' },
    { type: "call.end", id: "a" },
    { type: "call.start", id: "b", name: "weather" },
    { type: "call.delta", id: "b", text: '{"city":"Oslo"}' },
    { type: "call.end", id: "b" },
    { type: "finish", reason: "calls", usage: { input: 0, output: 0 } },
  ]);
  assertEquals(
    (await eventsOf(grow(0, { type: "text_delta", text: "Hi" }), stop(null), { type: "message_stop" })).at(-1),
    {
      type: "finish",
      reason: "stop",
      usage: { input: 0, output: 0 },
    },
  );
});

const rest = tool({ name: "rest", description: "Rests", input: z.object({}), execute: () => text("Rested") });

Deno.test("anthropic() sends a compaction back, and counts the tokens of all iterations", async () => {
  const usage = {
    input_tokens: 10,
    output_tokens: 5,
    output_tokens_details: { thinking_tokens: 2 },
    iterations: [
      { type: "compaction", input_tokens: 1_000, output_tokens: 50, cache_read_input_tokens: 100 },
      { type: "message", input_tokens: 10, output_tokens: 5 },
    ],
  };
  const compacted = sse([
    begin(0, { type: "compaction", content: null, encrypted_content: null }),
    grow(0, { type: "compaction_delta", content: "They asked for ", encrypted_content: null }),
    grow(0, { type: "compaction_delta", content: "rest.", encrypted_content: "ZW5j" }),
    { type: "content_block_stop", index: 0 },
    begin(1, { type: "tool_use", id: "a", name: "rest", input: {} }),
    { type: "content_block_stop", index: 1 },
    stop("tool_use", usage),
    { type: "message_stop" },
  ]);
  const { sent, fetch } = recordRequests(compacted, done);
  const model = anthropic({ model: "m", fetch, cache: false });
  const { usage: used } = await agent({ model, tools: [rest] }).run("Hi").result;
  assertEquals(sent[1]?.body.messages[1].content, [
    { type: "compaction", content: "They asked for rest.", encrypted_content: "ZW5j" },
    { type: "tool_use", id: "a", name: "rest", input: {} },
  ]);
  assertEquals([used.input, used.output, used.cached, used.reasoning], [1_110, 55, 100, 2]);
});

Deno.test("anthropic() runs the calls of a program, which may be in the first event, and sends their caller back", async () => {
  const caller = { type: "code_execution_20260120", tool_id: "srvtoolu_1" };
  const content = [{ type: "tool_use", id: "a", name: "rest", input: {}, caller }];
  const first = sse([
    { type: "message_start", message: { content } },
    begin(0, { type: "tool_use", id: "b", name: "rest", input: {}, caller: { type: "direct" } }),
    { type: "content_block_stop", index: 0 },
    stop("tool_use"),
    { type: "message_stop" },
  ]);
  const { sent, fetch } = recordRequests(first, done);
  await agent({ model: anthropic({ model: "m", fetch, cache: false }), tools: [rest] }).run("Hi").result;
  assertEquals(sent[1]?.body.messages[1].content, [
    ...content,
    { type: "tool_use", id: "b", name: "rest", input: {} },
  ]);
});

Deno.test("anthropic() throws for members that it cannot read, and names them", async () => {
  const cases: [frame: object, message: string][] = [
    [
      grow(0, { type: "input_json_delta", partial_json: "{" }),
      "the start of a call before its input in `content_block`",
    ],
    [grow(0, { type: "text_delta", text: 1 }), "a string in `text`"],
    [begin(0, { type: "tool_use", id: "a", name: {}, input: {} }), "a string in `name`"],
    [begin(0, { type: "tool_use", id: "a", name: "weather", input: [1] }), "an object in `input`"],
    [{ type: "message_delta", delta: { stop_reason: 1 } }, "a string in `stop_reason`"],
    [{ type: "message_start", message: { usage: "?" } }, "an object in `usage`"],
  ];
  for (const [frame, message] of cases) {
    const error = await eventsOf(frame as Parameters<typeof eventsOf>[0], { type: "message_stop" }).catch(String);
    assertEquals([frame, String(error).replace(/, got .*/, "")], [
      frame,
      `ModelError: Cannot read the response: expected ${message}`,
    ]);
  }
});

Deno.test("anthropic() maps the stop reason, also without the last frame", async () => {
  const reasons = {
    end_turn: "stop",
    stop_sequence: "stop",
    tool_use: "calls",
    max_tokens: "length",
    model_context_window_exceeded: "length",
    refusal: "refusal",
    pause_turn: "other",
  } as const;
  for (const [theirs, ours] of Object.entries(reasons)) {
    const refusal = { type: "part", part: { type: "refusal", text: "" } } as const;
    assertEquals(await eventsOf(stop(theirs)), [
      ...theirs === "refusal" ? [refusal] : [],
      { type: "finish", reason: ours, usage: { input: 0, output: 0 } },
    ]);
  }
  assertEquals(await eventsOf(stop(null)), []);
});

Deno.test("anthropic() adds cached tokens to the input and uses the last count of each", async () => {
  const usage = { input_tokens: 3, output_tokens: 1, cache_read_input_tokens: 40, cache_creation_input_tokens: 500 };
  const last = { output_tokens: 9, output_tokens_details: { thinking_tokens: 4 } };
  assertEquals(await eventsOf({ type: "message_start", message: { usage } }, stop("end_turn", last)), [
    {
      type: "finish",
      reason: "stop",
      usage: { input: 543, output: 9, cached: 40, cacheWrite: 500, reasoning: 4 },
    },
  ]);
});

const search = { type: "web_search_20260318", name: "web_search" };
const searching = providerTool({ type: "other", name: "search", apis: { anthropic: { tool: search } } });
const serverCall = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "Kyoto" } };
const serverResult = {
  type: "web_search_tool_result",
  tool_use_id: "srvtoolu_1",
  content: [{ type: "web_search_result", url: "https://example.com", title: "Weather", encrypted_content: "ZW5j" }],
};
const citation = { type: "web_search_result_location", url: "https://example.com", encrypted_index: "aWR4" };

/** The events of a search, and of a text that cites its result. */
const searched = [
  begin(0, { ...serverCall, input: {} }),
  grow(0, { type: "input_json_delta", partial_json: "" }),
  grow(0, { type: "input_json_delta", partial_json: '{"query":' }),
  grow(0, { type: "input_json_delta", partial_json: '"Kyoto"}' }),
  { type: "content_block_stop", index: 0 },
  begin(1, serverResult),
  { type: "content_block_stop", index: 1 },
  begin(2, { type: "text", text: "" }),
  grow(2, { type: "text_delta", text: "Sunny" }),
  grow(2, { type: "citations_delta", citation }),
  { type: "content_block_stop", index: 2 },
  begin(3, { type: "text", text: "" }),
  grow(3, { type: "text_delta", text: "." }),
  { type: "content_block_stop", index: 3 },
];
const searchedBlocks = [
  serverCall,
  serverResult,
  { type: "text", text: "Sunny", citations: [citation] },
  { type: "text", text: "." },
];

/** The part of `serverCall`. */
const searchCall = {
  type: "provider_call",
  callId: serverCall.id,
  name: serverCall.name,
  input: serverCall.input,
  meta: { model: "m", block: { type: serverCall.type } },
} as const;

Deno.test("anthropic() sends the list of the tools of an MCP server back, without a warning", async () => {
  const listing = { type: "mcp_tool_listing", mcp_server_name: "dice", tools: [{ name: "roll", input_schema: {} }] };
  const events = [begin(0, listing), { type: "content_block_stop", index: 0 }, begin(1, { type: "text", text: "Hi." })];
  const { fetch } = recordRequests(sse([...events, { type: "content_block_stop", index: 1 }, stop("end_turn")]));
  const run = agent({ model: anthropic({ model: "m", fetch, cache: false }) }).run("Hi");
  const warnings = (await Array.fromAsync(run.events)).filter(({ type }) => type === "warning");
  const { messages } = await run.result;
  assertEquals([warnings, (await messagesFor(...messages))[1]], [
    [],
    { role: "assistant", content: [listing, { type: "text", text: "Hi." }] },
  ]);
});

Deno.test("anthropic() sends blocks of built-in tools and citations back to the model, in order", async () => {
  const { sent, fetch } = recordRequests(sse([...searched, stop("end_turn")]));
  const model = anthropic({ model: "m", fetch, cache: false });
  const { messages } = await agent({ model, tools: [searching] }).run("Weather?").result;
  assertEquals(sent[0]?.body.tools, [search]);
  assertEquals((await messagesFor(...messages))[1], { role: "assistant", content: searchedBlocks });
  const other = await requestFor({ messages }, { model: "another" });
  assertEquals(other.body.messages[1].content, [
    { type: "text", text: '[You called web_search with {"query":"Kyoto"}]' },
    {
      type: "text",
      text: '[web_search returned [{"type":"web_search_result","url":"https://example.com","title":"Weather"}]]',
    },
    { type: "text", text: "Sunny" },
    { type: "text", text: "." },
  ]);
});

Deno.test("anthropic() keeps a block of a built-in tool whose input was cut", async () => {
  const events = await eventsOf(...searched.slice(0, 3), stop("max_tokens"));
  assertEquals(events[0], { type: "part", part: { ...searchCall, input: {} } });
});

Deno.test("anthropic() continues a paused turn with built-in tools and adds up its tokens", async () => {
  const { sent, fetch } = recordRequests(
    sse([...searched.slice(0, 7), stop("pause_turn", { input_tokens: 5, output_tokens: 1 })]),
    sse([begin(0, { type: "text", text: "" }), grow(0, { type: "text_delta", text: "So" }), stop("pause_turn")]),
    sse([
      begin(0, { type: "text", text: "" }),
      grow(0, { type: "text_delta", text: "." }),
      stop("end_turn", { output_tokens: 2 }),
    ]),
  );
  const model = anthropic({ model: "m", fetch, cache: false });
  const events = (await readAll(model, { messages: [user("Weather?")], tools: [searching.definition] })).flat();
  assertEquals(events, [
    { type: "part", part: searchCall },
    {
      type: "part",
      part: {
        type: "provider_result",
        callId: serverCall.id,
        name: "web_search",
        status: "ok",
        output: serverResult.content,
        meta: { model: "m", block: { type: serverResult.type } },
      },
    },
    { type: "text", text: "So" },
    { type: "text", text: "." },
    { type: "finish", reason: "stop", usage: { input: 5, output: 3 } },
  ]);
  const blocks = [serverCall, serverResult];
  assertEquals(sent.map(({ body }) => body.messages.slice(1)), [
    [],
    [{ role: "assistant", content: blocks }],
    [{ role: "assistant", content: [...blocks, { type: "text", text: "So" }] }],
  ]);
});

Deno.test("anthropic() does not continue a paused turn that was cut", async () => {
  const { sent, fetch } = recordRequests(sse([begin(0, { type: "text", text: "So" })]));
  const events = (await readAll(anthropic({ model: "m", fetch }), { tools: [searching.definition] })).flat();
  assertEquals([events, sent.length], [[{ type: "text", text: "So" }], 1]);
});
