import { agent, type Message, type ModelRequest, text, tool, user } from "@jizai/jizai";
import { openai, type ProviderOptions } from "@jizai/jizai/model/openai";
import { collect } from "@jizai/jizai/testing";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { key, schema, weather } from "../support/providers/api.ts";
import { type ChatDelta, chatStream } from "../support/providers/openai.ts";
import { readAll, recordRequests, respond, sse } from "../support/providers/sse.ts";

/** Returns the events of a response with these deltas. */
async function eventsOf(...deltas: readonly ChatDelta[]) {
  return await eventsIn(chatStream(...deltas));
}

async function eventsIn(stream: string) {
  return (await readAll(openai({ model: "m", fetch: respond(stream) }))).flat();
}

/** Returns the HTTP request that a model request becomes. */
async function requestFor(request: Partial<ModelRequest>, options: Partial<ProviderOptions> = {}) {
  const { sent, fetch } = recordRequests(chatStream("stop"));
  await readAll(openai({ model: "m", fetch, ...options }), request);
  return sent[0]!;
}

async function messagesFor(...messages: readonly Message[]) {
  return (await requestFor({ messages })).body.messages;
}

const elsewhere = { baseURL: "http://localhost:11434/v1" };

/** Creates a delta with one call. */
function callDelta(index: number | undefined, id: string | undefined, name: string | undefined, input: string) {
  return { tool_calls: [{ ...(index !== undefined && { index }), id, function: { name, arguments: input } }] };
}

function call(id: string, input: string) {
  return [{ type: "call.start", id, name: "weather" }, { type: "call.delta", id, text: input }] as const;
}

const finish = { type: "finish", reason: "calls", id: "chatcmpl-1" } as const;

Deno.test("openai() sends the key and every field of the request to OpenAI", async () => {
  const { url, headers, body } = await requestFor({
    instructions: "Be kind.",
    messages: [user("Hi")],
    tools: [weather],
  }, { apiKey: key });
  assertEquals(url, "https://api.openai.com/v1/chat/completions");
  assertEquals(headers, { "content-type": "application/json", authorization: `Bearer ${key}` });
  assertEquals(body, {
    model: "m",
    messages: [{ role: "system", content: "Be kind." }, { role: "user", content: "Hi" }],
    tools: [{ type: "function", function: { name: "weather", description: "Current weather", parameters: schema } }],
    stream: true,
    stream_options: { include_usage: true },
  });
});

Deno.test("openai() replaces lone surrogates, which OpenAI rejects", async () => {
  const texts = ["\ud83e", "\ude9d", "\ude9d\ud83e", "\u{1fa9d}", "\\ud83e", "\\\ud83e", '"\n\ud83e"'];
  const wellFormed = ["\ufffd", "\ufffd", "\ufffd\ufffd", "\u{1fa9d}", "\\ud83e", "\\\ufffd", '"\n\ufffd"'];
  const { body } = await requestFor({ instructions: "\ud83e", messages: texts.map((text) => user(text)) });
  assertEquals(body.messages, [
    { role: "system", content: "\ufffd" },
    ...wellFormed.map((content) => ({ role: "user", content })),
  ]);
});

Deno.test("openai() leaves out a missing key, tools and instructions", async () => {
  const { headers, body } = await requestFor({ messages: [user("Hi")] });
  assertEquals([headers.authorization, Object.keys(body)], [undefined, [
    "model",
    "messages",
    "stream",
    "stream_options",
  ]]);
  assertEquals(body.messages, [{ role: "user", content: "Hi" }]);
});

Deno.test("openai() sends the token limit in the field that the server knows", async () => {
  const options = { maxTokens: 9 };
  assertEquals((await requestFor({ options })).body.max_completion_tokens, 9);
  assertEquals((await requestFor({}, { ...elsewhere, ...options })).body.max_tokens, 9);
});

Deno.test("openai() sends the conversation: calls and results in order", async () => {
  const messages = await messagesFor(
    user("Weather?"),
    {
      role: "assistant",
      parts: [
        { type: "text", text: "Let me see." },
        { type: "call", id: "a", name: "weather", input: { city: "Kyoto" } },
        { type: "call", id: "b", name: "weather", input: "Oslo", malformed: "not JSON" },
      ],
    },
    {
      role: "tool",
      results: [
        { callId: "a", name: "weather", status: "ok", parts: [{ type: "text", text: "Sunny" }] },
        { callId: "b", name: "weather", status: "error", parts: [{ type: "text", text: "No." }] },
      ],
    },
    { role: "user", from: "inject", parts: [{ type: "text", text: "It is 9." }, { type: "text", text: "Be brief." }] },
    { role: "assistant", parts: [{ type: "reasoning", text: "Nothing came of it." }] },
    { role: "user", parts: [] },
  );
  assertEquals(messages, [
    { role: "user", content: "Weather?" },
    {
      role: "assistant",
      content: "Let me see.",
      tool_calls: [
        { id: "a", type: "function", function: { name: "weather", arguments: '{"city":"Kyoto"}' } },
        { id: "b", type: "function", function: { name: "weather", arguments: '{"input":"Oslo"}' } },
      ],
    },
    { role: "tool", tool_call_id: "a", content: "Sunny" },
    { role: "tool", tool_call_id: "b", content: "No." },
    { role: "user", content: [{ type: "text", text: "It is 9." }, { type: "text", text: "Be brief." }] },
    { role: "user", content: "" },
  ]);
});

Deno.test("openai() sends images, PDFs and recordings, and a notice for other files", async () => {
  const media = (mediaType: string, at: { data?: string; url?: string } = { data: "AA" }) =>
    ({ type: "media", mediaType, ...at }) as const;
  const [{ content }] = await messagesFor({
    role: "user",
    parts: [
      { type: "text", text: "Look" },
      media("image/png"),
      media("image/jpeg", { url: "https://example.com/a.jpg" }),
      media("application/pdf"),
      media("audio/mpeg"),
      media("audio/wav"),
      media("video/mp4"),
    ],
  });
  assertEquals(content, [
    { type: "text", text: "Look" },
    { type: "image_url", image_url: { url: "data:image/png;base64,AA" } },
    { type: "image_url", image_url: { url: "https://example.com/a.jpg" } },
    { type: "file", file: { filename: "file.pdf", file_data: "data:application/pdf;base64,AA" } },
    { type: "input_audio", input_audio: { data: "AA", format: "mp3" } },
    { type: "input_audio", input_audio: { data: "AA", format: "wav" } },
    { type: "text", text: "[A file of type video/mp4, which you cannot be shown.]" },
  ]);
});

Deno.test("openai() sends files of tool results in a user message after them", async () => {
  const image = { type: "media", mediaType: "image/png", data: "AA" } as const;
  const result = (callId: string, ...parts: readonly (typeof image | { type: "text"; text: string })[]) =>
    ({ callId, name: "draw", status: "ok", parts }) as const;
  const calls = ["a", "b"].map((id) => ({ type: "call", id, name: "draw", input: {} }) as const);
  const [, ...results] = await messagesFor(
    { role: "assistant", parts: calls },
    { role: "tool", results: [result("a", { type: "text", text: "Here" }, image), result("b")] },
  );
  assertEquals(results, [
    { role: "tool", tool_call_id: "a", content: "Here" },
    { role: "tool", tool_call_id: "b", content: "" },
    {
      role: "user",
      content: [
        { type: "text", text: "From draw, call a:" },
        { type: "image_url", image_url: { url: "data:image/png;base64,AA" } },
      ],
    },
  ]);
});

Deno.test("openai() requests an output, in strict mode if the schema allows it", async () => {
  const formatFor = async (output: Record<string, unknown>, options = {}, tools: ModelRequest["tools"] = []) =>
    (await requestFor({ options: { output }, tools }, options)).body.response_format;
  const loose = { type: "object", properties: { city: { type: "string" } }, minProperties: 1 };
  const strict = {
    type: "json_schema",
    json_schema: { name: "output", strict: true, schema: { ...schema, additionalProperties: false } },
  };
  assertEquals(await formatFor({ $schema: "draft", ...schema }), strict);
  assertEquals(await formatFor({ $schema: "draft", ...loose }), {
    type: "json_schema",
    json_schema: { name: "output", strict: false, schema: loose },
  });
  assertEquals(await formatFor({ type: "string" }), undefined);
  assertEquals(await formatFor(schema, {}, [weather]), strict);
  assertEquals(await formatFor(schema, elsewhere), strict);
  assertEquals(await formatFor(schema, elsewhere, [weather]), undefined);
  assertEquals(await formatFor(schema, { options: { response_format: null } }), undefined);
});

Deno.test("openai() returns the output of an agent", async () => {
  const fetch = respond(chatStream({ content: '{"city":' }, { content: '"Kyoto"}' }, "stop"));
  const { status, output } = await agent({
    model: openai({ model: "m", fetch }),
    output: z.object({ city: z.string() }),
  }).run("Where?").result;
  assertEquals([status, output], ["done", { city: "Kyoto" }]);
});

Deno.test("openai() reads reasoning from either field and ends it where the text begins", async () => {
  const note = (field: string) => ({ type: "reasoning", text: "", meta: { model: "m", field } }) as const;
  assertEquals(await eventsOf({ reasoning: "Hm." }, { reasoning: "", content: "So" }, { content: "." }, "stop"), [
    { type: "reasoning", text: "Hm." },
    note("reasoning"),
    { type: "text", text: "So" },
    { type: "text", text: "." },
    { type: "finish", reason: "stop", id: "chatcmpl-1" },
  ]);
  assertEquals(
    await eventsOf({ reasoning_content: "Hm.", reasoning: "Hm." }, callDelta(0, "a", "weather", "{}"), "stop"),
    [
      { type: "reasoning", text: "Hm." },
      note("reasoning_content"),
      ...call("a", "{}"),
      { type: "call.end", id: "a" },
      finish,
    ],
  );
  assertEquals((await eventsOf({ reasoning: "Hm." }, "length")).slice(1), [
    note("reasoning"),
    { type: "finish", reason: "length", id: "chatcmpl-1" },
  ]);
});

Deno.test("openai() sends reasoning back to its model, and to no other", async () => {
  const { sent, fetch } = recordRequests(
    chatStream(
      { reasoning_content: "Hm, " },
      { reasoning_content: "Kyoto." },
      callDelta(0, "a", "rest", "{}"),
      "tool_calls",
    ),
    chatStream({ content: "Done." }, "stop"),
  );
  const rest = tool({ name: "rest", description: "Rests", input: z.object({}), execute: () => text("Rested") });
  const { session } = await agent({ model: openai({ model: "m", fetch }), tools: [rest] }).run("Hi").result;
  assertEquals(session !== "", true);
  const sentMessage = {
    role: "assistant",
    content: "",
    tool_calls: [{ id: "a", type: "function", function: { name: "rest", arguments: "{}" } }],
  };
  assertEquals(sent[1]?.body.messages[1], { ...sentMessage, reasoning_content: "Hm, Kyoto." });

  const parts = [
    { type: "reasoning", text: "Hm.", meta: { model: "another", field: "reasoning_content" } },
    { type: "reasoning", text: "Hm.", meta: { model: "m", field: "constructor" } },
    { type: "reasoning", text: "Hm.", meta: { signature: "c2ln" } },
    { type: "call", id: "a", name: "rest", input: {} },
  ] as const;
  assertEquals(await messagesFor({ role: "assistant", parts }), [sentMessage]);
});

/** Creates a part of thinking, as Mistral sends it. */
function thinking(...texts: readonly string[]) {
  return { type: "thinking", thinking: texts.map((text) => ({ type: "text", text })) };
}

Deno.test("openai() reads content that is a list of parts: texts, and thinking as reasoning", async () => {
  const note = { type: "reasoning", text: "", meta: { model: "m", field: "thinking" } } as const;
  assertEquals(
    await eventsOf(
      { content: [thinking("Hm")] },
      { content: [thinking(", ")] },
      { content: [thinking("Kyoto", ".")] },
      { content: [{ ...thinking(), closed: true }, { type: "text", text: "So" }] },
      { content: [{ type: "text", text: " it" }] },
      { content: " is" },
      { content: [{ type: "text", text: "." }, thinking("Really?"), { type: "text", text: "Yes." }] },
      "stop",
    ),
    [
      { type: "reasoning", text: "Hm" },
      { type: "reasoning", text: ", " },
      { type: "reasoning", text: "Kyoto." },
      note,
      { type: "text", text: "So" },
      { type: "text", text: " it" },
      { type: "text", text: " is" },
      { type: "text", text: "." },
      { type: "reasoning", text: "Really?" },
      note,
      { type: "text", text: "Yes." },
      { type: "finish", reason: "stop", id: "chatcmpl-1" },
    ],
  );
  assertEquals(await eventsOf({ content: [thinking("Hm.")], ...callDelta(0, "a", "weather", "{}") }, "stop"), [
    { type: "reasoning", text: "Hm." },
    note,
    ...call("a", "{}"),
    { type: "call.end", id: "a" },
    finish,
  ]);
});

Deno.test("openai() warns once of each kind of unknown part in a list of content", async () => {
  const reference = { type: "reference", reference_ids: [1], text: "?" };
  const content = [null, "A", {}, reference, { type: "text" }, { type: "thinking" }, { type: "text", text: "B" }];
  const warnings = ['of type "undefined"', 'of type "reference"'].map((of) =>
    ({ type: "warning", message: `The response of m contains a part of content ${of}.` }) as const
  );
  assertEquals(await eventsOf({ content: [] }, { content }, { content: [reference, {}] }, "stop"), [
    { type: "text", text: "A" },
    ...warnings,
    { type: "text", text: "B" },
    { type: "finish", reason: "stop", id: "chatcmpl-1" },
  ]);
  const thinking = [null, "Hm", { type: "reference", text: "?" }, { type: "text", text: "." }];
  assertEquals((await eventsOf({ content: [{ type: "thinking", thinking }] }, "stop")).slice(0, 2), [
    { type: "warning", message: 'The response of m contains a part of thinking of type "reference".' },
    { type: "reasoning", text: "Hm." },
  ]);
  assertEquals((await eventsOf({ executed_tools: [{ type: "search", output: "Found" }] }, "stop")).slice(0, 1), [
    { type: "warning", message: "The response of m contains calls that the server has run itself." },
  ]);
  const { events } = await collect(
    agent({ model: openai({ model: "m", fetch: respond(chatStream({ content }, "stop")) }) }).run("Hi"),
  );
  assertEquals(
    events.flatMap((event) => event.type === "warning" ? [[event.code, event.message]] : []),
    warnings.map(({ message }) => ["response.unread", message]),
  );
});

Deno.test("openai() throws for members that it cannot read, and names them", async () => {
  const call = (call: object) => ({ tool_calls: [{ index: 0, id: "a", ...call }] });
  const cases: [delta: object, message: string][] = [
    [{ content: 1 }, "a string in `content`, got a value of type number"],
    [{ content: {} }, "a string in `content`, got a value of type object"],
    [{ content: [["?"]] }, "parts in `content`, got an array"],
    [{ content: [{ type: "text", text: 1 }] }, "a string in `text`, got a value of type number"],
    [{ content: [{ type: "thinking", thinking: 1 }] }, "an array in `thinking`, got a value of type number"],
    [{ refusal: true }, "a string in `refusal`, got a value of type boolean"],
    [{ reasoning: ["Hm"] }, "a string in `reasoning`, got an array"],
    [{ reasoning_content: {} }, "a string in `reasoning_content`, got a value of type object"],
    [{ reasoning_details: "Hm" }, "an array in `reasoning_details`, got a value of type string"],
    [{ reasoning_details: ["Hm"] }, "an array of objects in `reasoning_details`, got a value of type string"],
    [{ tool_calls: 1 }, "an array in `tool_calls`, got a value of type number"],
    [{ tool_calls: [1] }, "an array of objects in `tool_calls`, got a value of type number"],
    [call({ function: "weather" }), "an object in `function`, got a value of type string"],
    [call({ function: { name: 1 } }), "a string in `name`, got a value of type number"],
    [call({ function: { name: "weather", arguments: 1 } }), "a string in `arguments`, got a value of type number"],
    [call({ function: { name: "weather", arguments: [1] } }), "an object in `arguments`, got an array"],
    [call({ id: {}, function: { name: "weather" } }), "a string in `id`, got a value of type object"],
    [call({ type: "custom", custom: { name: "weather" } }), "a `name` in the `function` of each call"],
    [{ images: "?" }, "an array in `images`, got a value of type string"],
    [{ audio: "?" }, "an object in `audio`, got a value of type string"],
    [{ annotations: {} }, "an array in `annotations`, got a value of type object"],
  ];
  for (const [delta, message] of cases) {
    const error = await eventsOf({ content: "Hi" }, delta, "stop").catch(String);
    assertEquals([delta, String(error).replace(" of m:", ":")], [
      delta,
      `ModelError: Cannot read the response: expected ${message}`,
    ]);
  }
  const chunks: [chunk: object, message: string][] = [
    [{ choices: {} }, "an array in `choices`, got a value of type object"],
    [{ choices: [{ delta: "Hi" }] }, "an object in `delta`, got a value of type string"],
    [{ choices: [{ delta: {}, finish_reason: 1 }] }, "a string in `finish_reason`, got a value of type number"],
    [{ choices: [], usage: "?" }, "an object in `usage`, got a value of type string"],
    [{ choices: [], usage: { prompt_tokens: "9" } }, "a number in `prompt_tokens`, got a value of type string"],
  ];
  for (const [chunk, message] of chunks) {
    const error = await eventsIn(sse([chunk as Record<string, unknown>], "data: [DONE]\n\n")).catch(String);
    assertEquals([chunk, error], [chunk, `ModelError: Cannot read the response: expected ${message}`]);
  }
});

Deno.test("openai() sends thinking back to its model as a part of the content, and to no other", async () => {
  const { sent, fetch } = recordRequests(
    chatStream(
      { content: [thinking("Hm, ")] },
      { content: [thinking("Kyoto.")] },
      { content: "Let me rest." },
      callDelta(0, "a", "rest", "{}"),
      "tool_calls",
    ),
    chatStream({ content: [thinking("Hm.")] }, callDelta(0, "b", "rest", "{}"), "tool_calls"),
    chatStream({ content: [{ type: "text", text: "Done." }] }, "stop"),
  );
  const rest = tool({ name: "rest", description: "Rests", input: z.object({}), execute: () => text("Rested") });
  const result = await agent({ model: openai({ model: "m", fetch }), tools: [rest] }).run("Hi").result;
  const sentBack = (id: string, content: unknown) => ({
    role: "assistant",
    content,
    tool_calls: [{ id, type: "function", function: { name: "rest", arguments: "{}" } }],
  });
  assertEquals(result.text, "Done.");
  assertEquals(sent[2]?.body.messages.filter(({ role }: { role: string }) => role === "assistant"), [
    sentBack("a", [thinking("Hm, Kyoto."), { type: "text", text: "Let me rest." }]),
    sentBack("b", [thinking("Hm.")]),
  ]);

  const parts = [
    { type: "reasoning", text: "Hm.", meta: { model: "another", field: "thinking" } },
    { type: "text", text: "Let me rest." },
    { type: "call", id: "a", name: "rest", input: {} },
  ] as const;
  assertEquals(await messagesFor({ role: "assistant", parts }), [sentBack("a", "Let me rest.")]);
});

Deno.test("openai() sends the extra content of a call back", async () => {
  const extra = { google: { thought_signature: "c2ln" } };
  const { sent, fetch } = recordRequests(
    chatStream({
      tool_calls: [
        { index: 0, id: "a", function: { name: "rest", arguments: "{}" }, extra_content: extra },
        { index: 1, id: "b", function: { name: "rest", arguments: "{}" } },
      ],
    }, "stop"),
    chatStream({ content: "Done." }, "stop"),
  );
  const rest = tool({ name: "rest", description: "Rests", input: z.object({}), execute: () => text("Rested") });
  await agent({ model: openai({ model: "m", fetch }), tools: [rest] }).run("Hi").result;
  const sentBack = (id: string) => ({ id, type: "function", function: { name: "rest", arguments: "{}" } });
  assertEquals(sent[1]?.body.messages[1].tool_calls, [{ ...sentBack("a"), extra_content: extra }, sentBack("b")]);
});

Deno.test("openai() separates parallel calls of servers without an index", async () => {
  const ends = (...ids: readonly string[]) => [...ids.map((id) => ({ type: "call.end", id }) as const), finish];
  const both = [...call("a", "{}"), ...call("b", "{}"), ...ends("a", "b")];
  assertEquals(
    await eventsOf(callDelta(undefined, "a", "weather", "{}"), callDelta(undefined, "b", "weather", "{}"), "stop"),
    both,
  );
  assertEquals(await eventsOf(callDelta(0, "a", "weather", "{}"), callDelta(0, "b", "weather", "{}"), "stop"), both);

  const one = [...call("a", "{"), { type: "call.delta", id: "a", text: "}" } as const, ...ends("a")];
  assertEquals(await eventsOf(callDelta(0, "a", "weather", "{"), callDelta(0, "a", "weather", "}"), "stop"), one);
  assertEquals(await eventsOf(callDelta(0, "a", "weather", "{"), callDelta(0, "other", undefined, "}"), "stop"), one);
  assertEquals(await eventsOf(callDelta(0, "a", "weather", "{"), callDelta(0, "", "", "}"), "stop"), one);
});

Deno.test("openai() creates an id for a call without one or with a duplicate", async () => {
  const startsOf = (events: Awaited<ReturnType<typeof eventsOf>>) =>
    events.flatMap((event) => event.type === "call.start" ? [event.id] : []);
  const nameless = await eventsOf(callDelta(0, undefined, "weather", "{}"), callDelta(1, "", "weather", "{}"), "stop");
  assertEquals(startsOf(nameless), ["call_0", "call_1"]);
  assertEquals(startsOf(await eventsOf(callDelta(0, "a", "weather", ""), callDelta(1, "a", "weather", ""), "stop")), [
    "a",
    "a_",
  ]);
});

Deno.test("openai() ignores empty choices, null deltas and unknown fields", async () => {
  const chunks = [
    {},
    { choices: null },
    { choices: [] },
    { choices: [null] },
    { choices: [{ delta: null }] },
    { choices: [{ delta: { content: null, tool_calls: null, reasoning: null, reasoning_details: null } }] },
    { choices: [{ delta: { content: [], tool_calls: [null, {}, { index: 1 }] } }] },
    { choices: [{ delta: { content: "Hi" }, finish_reason: "" }], usage: null },
    { choices: [{ delta: {}, finish_reason: "eos" }] },
  ];
  assertEquals(await eventsIn(sse(chunks)), [{ type: "text", text: "Hi" }, { type: "finish", reason: "other" }]);
});

Deno.test("openai() ends at [DONE], or at the end of the stream after a finish reason", async () => {
  const hi = chatStream({ content: "Hi" });
  assertEquals(await eventsIn(`${hi}data: {"choices":[{"delta":{"content":"late"}}]}\n\n`), [
    { type: "text", text: "Hi" },
    { type: "finish", reason: "stop", id: "chatcmpl-1" },
  ]);
  assertEquals(await eventsIn(chatStream({ content: "Hi" }, "stop").replace("data: [DONE]\n\n", "")), [
    { type: "text", text: "Hi" },
    { type: "finish", reason: "stop", id: "chatcmpl-1" },
  ]);
  assertEquals(await eventsIn(hi.replace("data: [DONE]\n\n", "")), [{ type: "text", text: "Hi" }]);
});

Deno.test("openai() maps the finish reason", async () => {
  const reasonOf = async (reason: string) => (await eventsOf({ content: "Hi" }, reason)).at(-1);
  const reasons = {
    stop: "stop",
    length: "length",
    content_filter: "filter",
    tool_calls: "calls",
    other: "other",
  } as const;
  for (const [theirs, ours] of Object.entries(reasons)) {
    assertEquals(await reasonOf(theirs), { type: "finish", reason: ours, id: "chatcmpl-1" });
  }
});

Deno.test("openai() reads cached tokens from either field", async () => {
  const usageOf = async (usage: object) =>
    (await eventsIn(sse([{ choices: [{ finish_reason: "stop" }], usage }]))).at(-1);
  const counts = { prompt_tokens: 9, completion_tokens: 2 };
  const usage = { input: 9, output: 2, cached: 5 };
  const expected = { type: "finish", reason: "stop", usage } as const;
  assertEquals(await usageOf({ ...counts, prompt_tokens_details: { cached_tokens: 5 } }), expected);
  assertEquals(await usageOf({ ...counts, prompt_cache_hit_tokens: 5 }), expected);
  assertEquals(await usageOf({}), { type: "finish", reason: "stop", usage: { input: 0, output: 0 } });
});

Deno.test("openai() adds reasoning to the output if the server counts it apart", async () => {
  const usageOf = async (usage: object) => {
    const last = (await eventsIn(sse([{ choices: [{ finish_reason: "stop" }], usage }]))).at(-1);
    return last?.type === "finish" ? last.usage : undefined;
  };
  const details = { completion_tokens_details: { reasoning_tokens: 290 } };
  const counts = { prompt_tokens: 12, completion_tokens: 1, total_tokens: 303 };
  const expected = { input: 12, output: 291, reasoning: 290 };
  assertEquals(await usageOf({ ...counts, ...details }), expected); // xAI
  assertEquals(await usageOf({ ...counts, reasoning_tokens: 290 }), expected); // Perplexity
  assertEquals(await usageOf({ ...counts, ...details, completion_tokens: 500, total_tokens: 802 }), {
    input: 12,
    output: 790,
    reasoning: 290,
  });
  assertEquals(await usageOf({ ...counts, ...details, completion_tokens: 291 }), expected); // OpenAI
});

Deno.test("openai() emits a refusal as text and finishes with refusal", async () => {
  assertEquals(await eventsOf({ refusal: "I cannot." }, "stop"), [
    { type: "text", text: "I cannot." },
    { type: "part", part: { type: "refusal", text: "I cannot." } },
    { type: "finish", reason: "refusal", id: "chatcmpl-1" },
  ]);
});

Deno.test("openai() throws for an error frame of a proxy", async () => {
  const error = { object: "error", message: "Worker died", type: "InternalServerError", code: 500 };
  const failed = eventsIn(sse([{ choices: [{ delta: { content: "Hi" } }] }, error]) + "data: [DONE]\n\n");
  assertEquals(await failed.catch(String), "ModelError: Cannot ask m: 500 Worker died");
});

/** Creates a `fetch` that rejects every request whose `reasoning_effort` is not "none". */
function rejectReasoning(answer: string) {
  const message = "Function tools with reasoning_effort are not supported. Set reasoning_effort to 'none'.";
  const efforts: unknown[] = [];
  function fetch(_: string, { body }: RequestInit): Response {
    const { reasoning_effort: effort } = JSON.parse(String(body));
    efforts.push(effort);
    return effort === "none" ? respond(answer)() : Response.json({ error: { message } }, { status: 400 });
  }
  return { efforts, fetch };
}

Deno.test("openai() sends a request with tools again without reasoning if OpenAI demands it, and keeps it off", async () => {
  const { efforts, fetch } = rejectReasoning(chatStream({ content: "Hi" }, "stop"));
  const model = openai({ model: "m", fetch });
  for (let turn = 0; turn < 2; turn++) assertEquals((await readAll(model, { tools: [weather] })).flat().length, 2);
  assertEquals(efforts, [undefined, "none", "none"]);
});

Deno.test("openai() does not override reasoning_effort and never retries on other servers", async () => {
  for (const options of [{ options: { reasoning_effort: "low" } }, elsewhere]) {
    const { efforts, fetch } = rejectReasoning("");
    const error = await readAll(openai({ model: "m", fetch, ...options }), { tools: [weather] }).catch(String);
    assertEquals(
      error,
      "ModelError: Cannot ask m: 400 Function tools with reasoning_effort are not supported. Set reasoning_effort to 'none'.",
    );
    assertEquals(efforts.includes("none"), false);
  }
});
