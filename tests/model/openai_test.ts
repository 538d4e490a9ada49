import { agent, type Message, type ModelRequest, text, tool, user } from "@jizai/jizai";
import { openai, type ProviderOptions } from "@jizai/jizai/model/openai";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { answering, chunks, frames, key, reads, recording, type Said, schema, weather } from "../support/wires.ts";

/** What is said by an answer of these deltas. */
async function heard(...said: readonly Said[]) {
  return await heardIn(chunks(...said));
}

async function heardIn(stream: string) {
  return (await reads(openai({ model: "m", fetch: answering(stream) }))).flat();
}

/** What is sent for a request. */
async function sentFor(request: Partial<ModelRequest>, options: Partial<ProviderOptions> = {}) {
  const { sent, fetch } = recording(chunks("stop"));
  await reads(openai({ model: "m", fetch, ...options }), request);
  return sent[0]!;
}

async function messagesFor(...messages: readonly Message[]) {
  return (await sentFor({ messages })).body.messages;
}

const elsewhere = { baseURL: "http://localhost:11434/v1" };

/** A call made by delta. */
function made(index: number | undefined, id: string | undefined, name: string | undefined, input: string) {
  return { tool_calls: [{ ...(index !== undefined && { index }), id, function: { name, arguments: input } }] };
}

function call(id: string, input: string) {
  return [{ type: "call.start", id, name: "weather" }, { type: "call.delta", id, text: input }] as const;
}

const finish = { type: "finish", reason: "calls" } as const;

Deno.test("openai() asks OpenAI, with the key and what the request says", async () => {
  const { url, headers, body } = await sentFor({
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

Deno.test("openai() sends no half of a character, which would be refused with every request that follows", async () => {
  const texts = ["\ud83e", "\ude9d", "\ude9d\ud83e", "\u{1fa9d}", "\\ud83e", "\\\ud83e", '"\n\ud83e"'];
  const said = ["\ufffd", "\ufffd", "\ufffd\ufffd", "\u{1fa9d}", "\\ud83e", "\\\ufffd", '"\n\ufffd"'];
  const { body } = await sentFor({ instructions: "\ud83e", messages: texts.map((text) => user(text)) });
  assertEquals(body.messages, [
    { role: "system", content: "\ufffd" },
    ...said.map((content) => ({ role: "user", content })),
  ]);
});

Deno.test("openai() sends neither a key nor tools nor instructions where there are none", async () => {
  const { headers, body } = await sentFor({ messages: [user("Hi")] });
  assertEquals([headers.authorization, Object.keys(body)], [undefined, [
    "model",
    "messages",
    "stream",
    "stream_options",
  ]]);
  assertEquals(body.messages, [{ role: "user", content: "Hi" }]);
});

Deno.test("openai() limits the answer in the words of the one it asks", async () => {
  const options = { maxTokens: 9 };
  assertEquals((await sentFor({ options })).body.max_completion_tokens, 9);
  assertEquals((await sentFor({}, { ...elsewhere, ...options })).body.max_tokens, 9);
});

Deno.test("openai() tells the conversation: calls, results in their order, failures", async () => {
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

Deno.test("openai() shows images, files and recordings, and says what it cannot show", async () => {
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

Deno.test("openai() shows the files among results after all of them", async () => {
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

Deno.test("openai() asks for an output: strictly where the schema can be said strictly", async () => {
  const formatFor = async (output: Record<string, unknown>, options = {}, tools: ModelRequest["tools"] = []) =>
    (await sentFor({ options: { output }, tools }, options)).body.response_format;
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

Deno.test("openai() hears an output that an agent asked for", async () => {
  const fetch = answering(chunks({ content: '{"city":' }, { content: '"Kyoto"}' }, "stop"));
  const { status, output } = await agent({
    model: openai({ model: "m", fetch }),
    output: z.object({ city: z.string() }),
  }).run("Where?").result;
  assertEquals([status, output], ["done", { city: "Kyoto" }]);
});

Deno.test("openai() hears thought in either field, and ends it where the answer begins", async () => {
  const note = (field: string) => ({ type: "reasoning", text: "", meta: { model: "m", field } }) as const;
  assertEquals(await heard({ reasoning: "Hm." }, { reasoning: "", content: "So" }, { content: "." }, "stop"), [
    { type: "reasoning", text: "Hm." },
    note("reasoning"),
    { type: "text", text: "So" },
    { type: "text", text: "." },
    { type: "finish", reason: "stop" },
  ]);
  assertEquals(await heard({ reasoning_content: "Hm.", reasoning: "Hm." }, made(0, "a", "weather", "{}"), "stop"), [
    { type: "reasoning", text: "Hm." },
    note("reasoning_content"),
    ...call("a", "{}"),
    { type: "call.end", id: "a" },
    finish,
  ]);
  assertEquals((await heard({ reasoning: "Hm." }, "length")).slice(1), [
    note("reasoning"),
    { type: "finish", reason: "length" },
  ]);
});

Deno.test("openai() sends a model its own thought back, and no other's", async () => {
  const { sent, fetch } = recording(
    chunks({ reasoning_content: "Hm, " }, { reasoning_content: "Kyoto." }, made(0, "a", "rest", "{}"), "tool_calls"),
    chunks({ content: "Done." }, "stop"),
  );
  const rest = tool({ name: "rest", description: "Rests", input: z.object({}), execute: () => text("Rested") });
  const { session } = await agent({ model: openai({ model: "m", fetch }), tools: [rest] }).run("Hi").result;
  assertEquals(session !== "", true);
  const said = {
    role: "assistant",
    content: "",
    tool_calls: [{ id: "a", type: "function", function: { name: "rest", arguments: "{}" } }],
  };
  assertEquals(sent[1]?.body.messages[1], { ...said, reasoning_content: "Hm, Kyoto." });

  const parts = [
    { type: "reasoning", text: "Hm.", meta: { model: "another", field: "reasoning_content" } },
    { type: "reasoning", text: "Hm.", meta: { model: "m", field: "constructor" } },
    { type: "reasoning", text: "Hm.", meta: { signature: "c2ln" } },
    { type: "call", id: "a", name: "rest", input: {} },
  ] as const;
  assertEquals(await messagesFor({ role: "assistant", parts }), [said]);
});

Deno.test("openai() sends back what came with a call", async () => {
  const extra = { google: { thought_signature: "c2ln" } };
  const { sent, fetch } = recording(
    chunks({
      tool_calls: [
        { index: 0, id: "a", function: { name: "rest", arguments: "{}" }, extra_content: extra },
        { index: 1, id: "b", function: { name: "rest", arguments: "{}" } },
      ],
    }, "stop"),
    chunks({ content: "Done." }, "stop"),
  );
  const rest = tool({ name: "rest", description: "Rests", input: z.object({}), execute: () => text("Rested") });
  await agent({ model: openai({ model: "m", fetch }), tools: [rest] }).run("Hi").result;
  const sentBack = (id: string) => ({ id, type: "function", function: { name: "rest", arguments: "{}" } });
  assertEquals(sent[1]?.body.messages[1].tool_calls, [{ ...sentBack("a"), extra_content: extra }, sentBack("b")]);
});

Deno.test("openai() tells calls apart although a server does not say how", async () => {
  const ends = (...ids: readonly string[]) => [...ids.map((id) => ({ type: "call.end", id }) as const), finish];
  const both = [...call("a", "{}"), ...call("b", "{}"), ...ends("a", "b")];
  assertEquals(await heard(made(undefined, "a", "weather", "{}"), made(undefined, "b", "weather", "{}"), "stop"), both);
  assertEquals(await heard(made(0, "a", "weather", "{}"), made(0, "b", "weather", "{}"), "stop"), both);

  const one = [...call("a", "{"), { type: "call.delta", id: "a", text: "}" } as const, ...ends("a")];
  assertEquals(await heard(made(0, "a", "weather", "{"), made(0, "a", "weather", "}"), "stop"), one);
  assertEquals(await heard(made(0, "a", "weather", "{"), made(0, "other", undefined, "}"), "stop"), one);
  assertEquals(await heard(made(0, "a", "weather", "{"), made(0, "", "", "}"), "stop"), one);
});

Deno.test("openai() gives an id to a call that has none, or another's", async () => {
  const startsOf = (events: Awaited<ReturnType<typeof heard>>) =>
    events.flatMap((event) => event.type === "call.start" ? [event.id] : []);
  const nameless = await heard(made(0, undefined, "weather", "{}"), made(1, "", "weather", "{}"), "stop");
  assertEquals(startsOf(nameless), ["call_0", "call_1"]);
  assertEquals(startsOf(await heard(made(0, "a", "weather", ""), made(1, "a", "weather", ""), "stop")), ["a", "a_"]);
});

Deno.test("openai() makes nothing of empty choices, null deltas and what it does not know", async () => {
  const said = [
    {},
    { choices: null },
    { choices: [] },
    { choices: [null] },
    { choices: [{ delta: null }] },
    { choices: [{ delta: { content: null, tool_calls: null, reasoning: null } }] },
    { choices: [{ delta: { content: ["?"], tool_calls: [null], reasoning_content: {} } }] },
    { choices: [{ delta: { content: "Hi" }, finish_reason: "" }], usage: null },
    { choices: [{ delta: {}, finish_reason: "eos" }] },
  ];
  assertEquals(await heardIn(frames(said)), [{ type: "text", text: "Hi" }, { type: "finish", reason: "other" }]);
});

Deno.test("openai() takes [DONE] for the end, and does without it where the model said why it stopped", async () => {
  const hi = chunks({ content: "Hi" });
  assertEquals(await heardIn(`${hi}data: {"choices":[{"delta":{"content":"late"}}]}\n\n`), [
    { type: "text", text: "Hi" },
    { type: "finish", reason: "stop" },
  ]);
  assertEquals(await heardIn(chunks({ content: "Hi" }, "stop").replace("data: [DONE]\n\n", "")), [
    { type: "text", text: "Hi" },
    { type: "finish", reason: "stop" },
  ]);
  assertEquals(await heardIn(hi.replace("data: [DONE]\n\n", "")), [{ type: "text", text: "Hi" }]);
});

Deno.test("openai() says why the model stopped", async () => {
  const reasonOf = async (reason: string) => (await heard({ content: "Hi" }, reason)).at(-1);
  const reasons = {
    stop: "stop",
    length: "length",
    content_filter: "filter",
    tool_calls: "calls",
    other: "other",
  } as const;
  for (const [theirs, ours] of Object.entries(reasons)) {
    assertEquals(await reasonOf(theirs), { type: "finish", reason: ours });
  }
});

Deno.test("openai() counts tokens, and those that were cached, in either way", async () => {
  const usageOf = async (usage: object) =>
    (await heardIn(frames([{ choices: [{ finish_reason: "stop" }], usage }]))).at(-1);
  const counts = { prompt_tokens: 9, completion_tokens: 2 };
  const usage = { input: 9, output: 2, cached: 5 };
  const expected = { type: "finish", reason: "stop", usage } as const;
  assertEquals(await usageOf({ ...counts, prompt_tokens_details: { cached_tokens: 5 } }), expected);
  assertEquals(await usageOf({ ...counts, prompt_cache_hit_tokens: 5 }), expected);
  assertEquals(await usageOf({}), { type: "finish", reason: "stop", usage: { input: 0, output: 0 } });
});

Deno.test("openai() takes a refusal of the model for what it says", async () => {
  assertEquals(await heard({ refusal: "I cannot." }, "stop"), [
    { type: "text", text: "I cannot." },
    { type: "finish", reason: "stop" },
  ]);
});

Deno.test("openai() does not take the error of a server in between for an answer", async () => {
  const error = { object: "error", message: "Worker died", type: "InternalServerError", code: 500 };
  const said = heardIn(frames([{ choices: [{ delta: { content: "Hi" } }] }, error]) + "data: [DONE]\n\n");
  assertEquals(await said.catch(String), "ModelError: Cannot ask m: 500 Worker died");
});

/** Answers with `chunks`, and refuses to reason beside tools. */
function unreasonable(said: string) {
  const message = "Function tools with reasoning_effort are not supported. Set reasoning_effort to 'none'.";
  const efforts: unknown[] = [];
  function fetch(_: string, { body }: RequestInit): Response {
    const { reasoning_effort: effort } = JSON.parse(String(body));
    efforts.push(effort);
    return effort === "none" ? answering(said)() : Response.json({ error: { message } }, { status: 400 });
  }
  return { efforts, fetch };
}

Deno.test("openai() asks again without reasoning where that is what OpenAI wants for tools, and from then on", async () => {
  const { efforts, fetch } = unreasonable(chunks({ content: "Hi" }, "stop"));
  const model = openai({ model: "m", fetch });
  for (let turn = 0; turn < 2; turn++) assertEquals((await reads(model, { tools: [weather] })).flat().length, 2);
  assertEquals(efforts, [undefined, "none", "none"]);
});

Deno.test("openai() does as it is told about reasoning, and asks nobody else again", async () => {
  for (const options of [{ options: { reasoning_effort: "low" } }, elsewhere]) {
    const { efforts, fetch } = unreasonable("");
    const error = await reads(openai({ model: "m", fetch, ...options }), { tools: [weather] }).catch(String);
    assertEquals(
      error,
      "ModelError: Cannot ask m: 400 Function tools with reasoning_effort are not supported. Set reasoning_effort to 'none'.",
    );
    assertEquals(efforts.includes("none"), false);
  }
});
