import { agent, type Message, ModelError, type ModelRequest, text, tool, user } from "@jizai/jizai";
import { gemini, type GeminiOptions } from "@jizai/jizai/model/gemini";
import { providerTool } from "@jizai/jizai/provider_tools";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { key, schema, weather } from "../support/providers/api.ts";
import { partStream } from "../support/providers/gemini.ts";
import { errorOf, readAll, recordRequests, respond, sse } from "../support/providers/sse.ts";

/** Returns the events of a response. */
async function eventsIn(stream: string) {
  return (await readAll(gemini({ model: "m", fetch: respond(stream) }))).flat();
}

/** Returns the HTTP request that a model request becomes. */
async function requestFor(request: Partial<ModelRequest>, options: Partial<GeminiOptions> = {}) {
  const { sent, fetch } = recordRequests(partStream([[]]));
  await readAll(gemini({ model: "m", fetch, ...options }), request);
  return sent[0]!;
}

async function contentsFor(...messages: readonly Message[]) {
  return (await requestFor({ messages })).body.contents;
}

const finish = { type: "finish", reason: "stop", usage: { input: 7, output: 7, reasoning: 3 }, id: "r1" } as const;

Deno.test("gemini() sends the key and every field of the request to Google", async () => {
  const { url, headers, body } = await requestFor({
    instructions: "Be kind.",
    messages: [user("Hi")],
    tools: [weather, providerTool({ type: "web_search" }).definition],
    options: { maxTokens: 9, temperature: 0, provider: { labels: { a: "b" }, generationConfig: { topK: 5 } } },
  }, { apiKey: key, thoughts: true });
  assertEquals(url, "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse");
  assertEquals(headers, { "content-type": "application/json", "x-goog-api-key": key });
  assertEquals(body, {
    systemInstruction: { parts: [{ text: "Be kind." }] },
    contents: [{ role: "user", parts: [{ text: "Hi" }] }],
    tools: [
      { functionDeclarations: [{ name: "weather", description: "Current weather", parametersJsonSchema: schema }] },
      { googleSearch: {} },
    ],
    toolConfig: { includeServerSideToolInvocations: true },
    labels: { a: "b" },
    generationConfig: { temperature: 0, maxOutputTokens: 9, thinkingConfig: { includeThoughts: true }, topK: 5 },
  });
});

Deno.test("gemini() leaves out what is missing", async () => {
  const { body } = await requestFor({ messages: [user("Hi"), user("")] });
  assertEquals(body, { contents: [{ role: "user", parts: [{ text: "Hi" }] }], generationConfig: {} });
});

Deno.test("gemini() sends the conversation: calls, results in order, files after them", async () => {
  const image = { type: "media", mediaType: "image/png", data: "AA" } as const;
  const contents = await contentsFor(
    { role: "user", parts: [image, { type: "media", mediaType: "video/mp4", url: "https://example.com/a.mp4" }] },
    {
      role: "assistant",
      parts: [
        { type: "reasoning", text: "Hm." },
        { type: "text", text: "Let me see." },
        { type: "call", id: "a", name: "weather", input: { city: "Kyoto" } },
        { type: "call", id: "b", name: "weather", input: "Oslo", malformed: "not JSON" },
      ],
    },
    {
      role: "tool",
      results: [
        { callId: "a", name: "weather", status: "ok", parts: [{ type: "text", text: "Sunny" }, image] },
        { callId: "b", name: "weather", status: "denied", parts: [{ type: "text", text: "No." }] },
      ],
    },
  );
  const inlineData = { mimeType: "image/png", data: "AA" };
  assertEquals(contents, [
    {
      role: "user",
      parts: [{ inlineData }, { fileData: { mimeType: "video/mp4", fileUri: "https://example.com/a.mp4" } }],
    },
    {
      role: "model",
      parts: [
        { text: "Let me see." },
        { functionCall: { id: "a", name: "weather", args: { city: "Kyoto" } } },
        { functionCall: { id: "b", name: "weather", args: { input: "Oslo" } } },
      ],
    },
    {
      role: "user",
      parts: [
        { functionResponse: { id: "a", name: "weather", response: { output: "Sunny" } } },
        { functionResponse: { id: "b", name: "weather", response: { error: "No." } } },
      ],
    },
    { role: "user", parts: [{ text: "From weather, call a:" }, { inlineData }] },
  ]);
});

Deno.test("gemini() lets a person begin a conversation that begins with an assistant's greeting", async () => {
  const opening = { role: "user", parts: [{ text: "[The conversation begins with your message.]" }] };
  const greeting: Message = { role: "assistant", parts: [{ type: "text", text: "Hello!" }] };
  const rest = [{ role: "model", parts: [{ text: "Hello!" }] }, { role: "user", parts: [{ text: "Hi" }] }];
  for (const before of [[], [user("")]]) {
    assertEquals(await contentsFor(...before, greeting, user("Hi")), [opening, ...rest]);
  }
  assertEquals(await contentsFor(user("Hi"), greeting, user("Hi")), [rest[1], ...rest]);
});

Deno.test("gemini() sends thought signatures and the parts of built-in tools back to the model, in order", async () => {
  const code = { executableCode: { language: "PYTHON", code: "print(1)" } };
  const image = { inlineData: { mimeType: "image/png", data: "AA" }, thoughtSignature: "b25l" };
  const { sent, fetch } = recordRequests(
    partStream([
      [{ text: "Hm.", thought: true, thoughtSignature: "dHdv" }],
      [code, { codeExecutionResult: { outcome: "OUTCOME_OK", output: "1" } }, image],
      [{ text: "Let me " }],
      [{ text: "see." }, { text: "", thoughtSignature: "dGhyZWU" }],
      [
        { functionCall: { id: "a", name: "rest", args: {} }, thoughtSignature: "Zm91cg" },
        { functionCall: { id: "b", name: "rest", args: {} } },
      ],
    ]),
    partStream([[{ text: "Done." }]]),
  );
  const rest = tool({ name: "rest", description: "Rests", input: z.object({}), execute: () => text("Rested") });
  const { messages } = await agent({ model: gemini({ model: "m", fetch }), tools: [rest] }).run("Hi").result;
  const calls = ["a", "b"].map((id) => ({ functionCall: { id, name: "rest", args: {} } }));
  assertEquals(sent[1]?.body.contents[1].parts, [
    { text: "Hm.", thought: true, thoughtSignature: "dHdv" },
    code,
    { codeExecutionResult: { outcome: "OUTCOME_OK", output: "1" } },
    image,
    { text: "Let me see." },
    { text: "", thoughtSignature: "dGhyZWU" },
    { ...calls[0], thoughtSignature: "Zm91cg" },
    calls[1],
  ]);

  const other = await requestFor({ messages }, { model: "another" });
  assertEquals(other.body.contents[1].parts, [
    { text: '[You called code_execution with {"language":"PYTHON","code":"print(1)"}]' },
    { text: '[code_execution returned "1"]' },
    { inlineData: { mimeType: "image/png", data: "AA" } },
    { text: "Let me see." },
    ...calls,
  ]);
});

Deno.test("gemini() keeps grounding metadata", async () => {
  const grounding = { webSearchQueries: ["weather"], groundingChunks: [{ web: { uri: "https://example.com" } }] };
  const search = { callId: "r1_0", name: "web_search", meta: { model: "m", reported: true } };
  const call = { type: "provider_call", ...search, input: { queries: ["weather"] } } as const;
  const result = { type: "provider_result", ...search, status: "ok", output: grounding.groundingChunks } as const;
  assertEquals(await eventsIn(partStream([[{ text: "Sunny." }], []], { groundingMetadata: grounding })), [
    { type: "text", text: "Sunny." },
    { type: "part", part: call },
    { type: "part", part: result },
    { type: "part", part: { type: "source", url: "https://example.com" } },
    { type: "reasoning", text: "", meta: { model: "m", grounding } },
    finish,
  ]);
  const noted = { type: "reasoning", text: "", meta: { model: "m", grounding } } as const;
  const parts = [{ type: "text", text: "Sunny." }, call, result, noted] as const;
  assertEquals(await contentsFor({ role: "assistant", parts }), [
    { role: "model", parts: [{ text: "Sunny." }] },
  ]);
});

Deno.test("gemini() creates an id for a call without one or with a duplicate", async () => {
  const call = (id?: string) => ({ functionCall: { ...(id && { id }), name: "weather" } });
  const events = await eventsIn(partStream([[call("call_1"), call(), call("call_1")]]));
  assertEquals(events.flatMap((event) => event.type === "call.start" ? [event.id] : []), [
    "call_1",
    "call_1_",
    "call_1__",
  ]);
  assertEquals(events.flatMap((event) => event.type === "call.delta" ? [event.text] : []), ["{}", "{}", "{}"]);
});

Deno.test("gemini() maps the finish reason", async () => {
  const reasons = {
    STOP: "stop",
    MAX_TOKENS: "length",
    SAFETY: "filter",
    RECITATION: "filter",
    PROHIBITED_CONTENT: "filter",
    LANGUAGE: "other",
    OTHER: "other",
  } as const;
  const refusalOf = (category: string) => ({ type: "part", part: { type: "refusal", text: "", category } }) as const;
  for (const [finishReason, reason] of Object.entries(reasons)) {
    assertEquals(await eventsIn(partStream([[]], { finishReason })), [
      ...reason === "filter" ? [refusalOf(finishReason)] : [],
      { ...finish, reason },
    ]);
  }
  const blocked = sse([{ promptFeedback: { blockReason: "SAFETY" } }]);
  assertEquals(await eventsIn(blocked), [refusalOf("SAFETY"), { type: "finish", reason: "filter" }]);
});

Deno.test("gemini() throws a recoverable error for a call that the model wrote wrongly", async () => {
  const error = await errorOf(eventsIn(partStream([[]], { finishReason: "MALFORMED_FUNCTION_CALL" })));
  if (!(error instanceof ModelError)) throw error;
  assertEquals([error.message, error.recoverable], [
    "Cannot read the response of m: the model wrote an invalid call (MALFORMED_FUNCTION_CALL)",
    true,
  ]);
});

/** Creates a stream with one part in each frame. */
function streamOf(parts: readonly object[], finishReason: string) {
  const frames = parts.map((part) => ({ candidates: [{ content: { parts: [part] } }] }));
  return sse([...frames, { candidates: [{ finishReason }] }]);
}

Deno.test("gemini() joins a call whose input is streamed in pieces", async () => {
  const part = (functionCall: object) => ({ functionCall });
  const piece = (jsonPath: string, value: object) => ({ jsonPath, ...value });
  const parts = [
    part({ name: "weather", id: "a", willContinue: true }),
    part({ partialArgs: [piece("$.city", { stringValue: "Ky", willContinue: true })], willContinue: true }),
    part({ partialArgs: [piece("$.city", { stringValue: "oto" })], willContinue: true }),
    part({
      partialArgs: [
        piece("$.days[0].at", { numberValue: 1 }),
        piece("$.days[1]['is on']", { boolValue: false }),
        piece("$.days[1].note", { nullValue: "NULL_VALUE" }),
        piece("$.__proto__.x", { stringValue: "y" }),
      ],
      willContinue: true,
    }),
    part({}),
    part({ name: "weather", args: { city: "Oslo" } }),
  ];
  const input = '{"city":"Kyoto","days":[{"at":1},{"is on":false,"note":null}],"__proto__":{"x":"y"}}';
  assertEquals(await eventsIn(streamOf(parts, "STOP")), [
    { type: "call.start", id: "a", name: "weather" },
    { type: "call.delta", id: "a", text: input },
    { type: "call.end", id: "a" },
    { type: "call.start", id: "call_1", name: "weather" },
    { type: "call.delta", id: "call_1", text: '{"city":"Oslo"}' },
    { type: "call.end", id: "call_1" },
    { type: "finish", reason: "calls" },
  ]);
  assertEquals(await eventsIn(streamOf(parts.slice(0, 2), "MAX_TOKENS")), [
    { type: "call.start", id: "a", name: "weather" },
    { type: "call.delta", id: "a", text: '{"city":"Ky"' },
    { type: "finish", reason: "length" },
  ]);
  const odd = part({ name: "weather", partialArgs: [piece("city", { stringValue: "Kyoto" })] });
  assertEquals(
    await eventsIn(streamOf([odd], "STOP")).catch(String),
    "ModelError: Cannot read the response: expected a path below `$` in `jsonPath`, got a value of type string",
  );
});

Deno.test("gemini() adds reasoning and tool results to the token counts", async () => {
  const usageMetadata = {
    promptTokenCount: 9,
    toolUsePromptTokenCount: 1,
    candidatesTokenCount: 2,
    thoughtsTokenCount: 3,
    cachedContentTokenCount: 5,
  };
  const stream = sse([{ responseId: "r1", candidates: [{ finishReason: "STOP" }], usageMetadata }]);
  assertEquals(await eventsIn(stream), [{ ...finish, usage: { input: 10, output: 5, cached: 5, reasoning: 3 } }]);
});

Deno.test("gemini() reads how long to wait from the details of an error", async () => {
  const details = [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "34.5s" }];
  const error = { code: 429, message: "Quota exceeded.", status: "RESOURCE_EXHAUSTED", details };
  const model = gemini({ model: "m", fetch: () => Response.json([{ error }], { status: 429 }) });
  const thrown = await errorOf(readAll(model));
  if (!(thrown instanceof ModelError)) throw thrown;
  const { message, code, recoverable, retryAfter } = thrown;
  assertEquals([message, code, recoverable, retryAfter], [
    "Cannot ask m: 429 Quota exceeded.",
    "rate_limited",
    true,
    34_500,
  ]);
});

Deno.test("gemini() ignores frames that it does not know", async () => {
  const frames = [{}, { candidates: null }, { candidates: [null] }, { candidates: [{ content: { parts: [null] } }] }];
  assertEquals(await eventsIn(sse([...frames, { candidates: [{ content: {}, finishReason: "STOP" }] }])), [
    { type: "finish", reason: "stop" },
  ]);
});

Deno.test("gemini() requests an output, beside tools only from models that support both", async () => {
  const configFor = async (model: string, tools: ModelRequest["tools"] = []) => {
    const request = { tools, options: { output: { $schema: "draft", ...schema } } };
    return (await requestFor(request, { model })).body.generationConfig;
  };
  const expected = { responseMimeType: "application/json", responseJsonSchema: schema };
  assertEquals(await configFor("gemini-2.5-flash"), expected);
  assertEquals(await configFor("gemini-2.5-flash", [weather]), {});
  assertEquals(await configFor("gemini-3-flash", [weather]), expected);
});
