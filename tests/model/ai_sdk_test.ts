import { agent, type Message, ModelError, type ModelRequest, user } from "@jizai/jizai";
import { aiSdk, type AiSdkModel, type AiSdkOptions } from "@jizai/jizai/model/ai_sdk";
import { collect } from "@jizai/jizai/testing";
import { assertEquals } from "@std/assert";
import { createOpenAI as createV2 } from "npm:@ai-sdk/openai@2.0.99";
import { createOpenAI as createV3 } from "npm:@ai-sdk/openai@3.0.83";
import { createOpenAI as createV4 } from "npm:@ai-sdk/openai@4.0.118";
import { mockProvider, transcript, weather } from "../support/aimock.ts";
import { lines } from "../support/transcript_lines.ts";
import { chatCompletions } from "../support/providers/openai.ts";
import { errorOf, readAll, respond } from "../support/providers/sse.ts";

const mock = mockProvider();
mock.on({ userMessage: "long" }, { error: { message: "Too much", code: "context_length_exceeded" }, status: 400 });
const settings = { baseURL: `${await mock.start()}/v1`, apiKey: "sk-0123456789" };

const real: Readonly<Record<string, AiSdkModel>> = {
  "chat of v4": createV4(settings).chat("gpt-5"),
  "responses of v4": createV4(settings).responses("gpt-5"),
  "chat of v3": createV3(settings).chat("gpt-5"),
  "responses of v3": createV3(settings).responses("gpt-5"),
  "chat of v2": createV2(settings).chat("gpt-5"),
  "responses of v2": createV2(settings).responses("gpt-5"),
};

for (const [name, model] of Object.entries(real)) {
  const assistant = agent({ model: aiSdk(model), instructions: "You know the weather.", tools: [weather] });

  Deno.test(`aiSdk() completes a run with two parallel calls over @ai-sdk/openai, ${name}`, async () => {
    const { result } = await collect(assistant.run("What is the weather?"));
    assertEquals([result.error, result.text, result.usage], [
      undefined,
      "Sunny in 京都 and Oslo.",
      { input: 40, output: 20 },
    ]);
    assertEquals(lines(result.messages), transcript);
  });

  Deno.test(`aiSdk() converts the errors of @ai-sdk/openai, ${name}`, async () => {
    const busy = (await assistant.run("Are you busy?").result).error as ModelError;
    assertEquals([busy.message, busy.status, busy.recoverable, busy.retryAfter], [
      "Cannot ask gpt-5: 429 Slow down",
      429,
      true,
      7_000,
    ]);
    const long = (await assistant.run("Is it long?").result).error as ModelError;
    assertEquals([long.message, long.recoverable, long.overflow], ["Cannot ask gpt-5: 400 Too much", false, true]);
    const cut = (await assistant.run("Will you be cut?").result).error as ModelError;
    assertEquals([cut instanceof ModelError, cut.recoverable], [true, true]);
  });
}

/** Creates a model that streams `parts` and records its calls. */
function fake(parts: readonly unknown[] = [finish], specificationVersion = "v4") {
  const asked: Record<string, unknown>[] = [];
  const model: AiSdkModel = {
    specificationVersion,
    modelId: "m",
    doStream(call) {
      asked.push({ ...call });
      return Promise.resolve({ stream: ReadableStream.from(parts) });
    },
  };
  return { asked, model };
}

const finish = {
  type: "finish",
  finishReason: { unified: "stop", raw: "stop" },
  usage: { inputTokens: { total: 9, cacheRead: 5 }, outputTokens: { total: 2 } },
};
const end = { type: "finish", reason: "stop", usage: { input: 9, output: 2, cached: 5 } } as const;

async function eventsOf(...parts: readonly unknown[]) {
  return (await readAll(aiSdk(fake([...parts, finish]).model))).flat().slice(0, -1);
}

/** Returns the call that a request becomes. */
async function requestFor(request: Partial<ModelRequest>, options: AiSdkOptions = {}, version = "v4") {
  const { asked, model } = fake([finish], version);
  await readAll(aiSdk(model, options), request);
  const [{ abortSignal: _, ...call } = {}] = asked;
  return call;
}

Deno.test("aiSdk() returns the id of the response, and the provider by the name of the conventions", async () => {
  const parts = [{ type: "response-metadata", id: "chatcmpl-1" }, { type: "response-metadata", modelId: "m" }, finish];
  assertEquals((await readAll(aiSdk(fake(parts).model))).flat(), [{ ...end, id: "chatcmpl-1" }]);
  assertEquals((await readAll(aiSdk(fake([{ type: "response-metadata", id: 7 }, finish]).model))).flat(), [end]);
  const names = [
    ["openai.chat", "openai"],
    ["anthropic.messages", "anthropic"],
    ["google.generative-ai", "gcp.gemini"],
    ["google.vertex.chat", "gcp.vertex_ai"],
    ["vertex.anthropic.messages", "gcp.vertex_ai"],
    ["amazon-bedrock", "aws.bedrock"],
    ["azure.responses", "azure.ai.openai"],
    ["mistral.chat", "mistral_ai"],
    ["xai.chat", "x_ai"],
    ["groq.chat", "groq"],
  ] as const;
  for (const [sdkName, provider] of names) {
    assertEquals(aiSdk({ ...fake([]).model, provider: sdkName }).server, { provider });
  }
  assertEquals(aiSdk(fake([]).model).server, undefined);
});

async function promptFor(messages: readonly Message[], version?: string) {
  return (await requestFor({ messages }, {}, version)).prompt;
}

const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

Deno.test("aiSdk() sends every field of the request", async () => {
  const providerOptions = { a: { b: 1 } };
  const request = {
    instructions: "Be kind.",
    messages: [user("Hi")],
    tools: [{ name: "weather", description: "Current weather", schema: { $schema: "draft", ...schema } }],
    options: { output: schema, temperature: 0, provider: { c: { d: 2 } } },
  };
  assertEquals(await requestFor(request, { providerOptions, temperature: 1, maxTokens: 9 }), {
    prompt: [
      { role: "system", content: "Be kind." },
      { role: "user", content: [{ type: "text", text: "Hi" }] },
    ],
    maxOutputTokens: 9,
    temperature: 0,
    providerOptions: { a: { b: 1 }, c: { d: 2 } },
    tools: [{ type: "function", name: "weather", description: "Current weather", inputSchema: schema }],
    responseFormat: { type: "json", name: "output", schema: { ...schema, additionalProperties: false } },
  });
  assertEquals(
    (await requestFor({ options: { output: { type: "object", properties: { a: {} } } } })).responseFormat,
    undefined,
  );
});

Deno.test("aiSdk() sends the conversation: calls, results in order, failed results as errors", async () => {
  const result = (callId: string, status: "ok" | "denied", text: string) =>
    ({ callId, name: "weather", status, parts: [{ type: "text", text }] }) as const;
  const prompt = await promptFor([
    {
      role: "assistant",
      parts: [
        { type: "text", text: "Let me see." },
        { type: "call", id: "a", name: "weather", input: { city: "Kyoto" } },
        { type: "call", id: "b", name: "weather", input: "Oslo", malformed: "not JSON" },
      ],
    },
    { role: "tool", results: [result("a", "ok", "Sunny"), result("b", "denied", "No.")] },
    { role: "assistant", parts: [{ type: "reasoning", text: "Hm.", meta: { signature: "c2ln" } }] },
  ]);
  assertEquals(prompt, [
    {
      role: "assistant",
      content: [
        { type: "text", text: "Let me see." },
        { type: "tool-call", toolCallId: "a", toolName: "weather", input: { city: "Kyoto" } },
        { type: "tool-call", toolCallId: "b", toolName: "weather", input: { input: "Oslo" } },
      ],
    },
    {
      role: "tool",
      content: [
        { type: "tool-result", toolCallId: "a", toolName: "weather", output: { type: "text", value: "Sunny" } },
        { type: "tool-result", toolCallId: "b", toolName: "weather", output: { type: "error-text", value: "No." } },
      ],
    },
  ]);
});

Deno.test("aiSdk() sends files in the form of each specification", async () => {
  const url = "https://example.com/a.png";
  const image = { type: "media", mediaType: "image/png", data: "AA" } as const;
  const linked = { type: "media", mediaType: "image/png", url } as const;
  const pdf = { type: "media", mediaType: "application/pdf", data: "AA" } as const;
  const messages: readonly Message[] = [
    { role: "user", parts: [image, linked] },
    { role: "tool", results: [{ callId: "a", name: "draw", status: "ok", parts: [image, linked, pdf] }] },
  ];
  const inWords = async (version: string) => {
    const prompt = await promptFor([messages[0]!, {
      role: "assistant",
      parts: [{ type: "call", id: "a", name: "draw", input: {} }],
    }, messages[1]!], version);
    const [asked, , answered] = prompt as { content: { output: { value: unknown } }[] }[];
    return [asked?.content, answered?.content[0]?.output.value];
  };
  const file = (mediaType: string, data: unknown) => ({ type: "file", mediaType, data });
  const png = "image/png";
  const v4 = [file(png, { type: "data", data: "AA" }), file(png, { type: "url", url: new URL(url) })];
  assertEquals(await inWords("v4"), [v4, [...v4, file("application/pdf", { type: "data", data: "AA" })]]);
  const older = [file(png, "AA"), file(png, new URL(url))];
  assertEquals(await inWords("v3"), [older, [
    { type: "image-data", mediaType: png, data: "AA" },
    { type: "image-url", url },
    { type: "file-data", mediaType: "application/pdf", data: "AA" },
  ]]);
  assertEquals(await inWords("v2"), [older, [
    { type: "media", mediaType: png, data: "AA" },
    { type: "text", text: "[A file of type image/png, which you cannot be shown.]" },
    { type: "media", mediaType: "application/pdf", data: "AA" },
  ]]);
});

Deno.test("aiSdk() emits calls, streamed or whole, and calls that the provider runs with their results", async () => {
  assertEquals(
    await eventsOf(
      { type: "tool-input-start", id: "a", toolName: "weather" },
      { type: "tool-input-delta", id: "a", delta: "{" },
      { type: "tool-input-delta", id: "a", delta: "}" },
      { type: "tool-input-end", id: "a" },
      { type: "tool-call", toolCallId: "a", toolName: "weather", input: "{}" },
      { type: "tool-input-start", id: "b", toolName: "weather" },
      { type: "tool-call", toolCallId: "b", toolName: "weather", input: "[]" },
      { type: "tool-call", toolCallId: "c", toolName: "weather", input: "{" },
      { type: "tool-input-start", id: "d", toolName: "search", providerExecuted: true },
      { type: "tool-input-delta", id: "d", delta: "{}" },
      { type: "tool-call", toolCallId: "d", toolName: "search", input: '{"q":1}', providerExecuted: true },
      { type: "tool-result", toolCallId: "d", toolName: "search", result: { found: 2 }, providerExecuted: true },
    ),
    [
      { type: "call.start", id: "a", name: "weather" },
      { type: "call.delta", id: "a", text: "{" },
      { type: "call.delta", id: "a", text: "}" },
      { type: "call.end", id: "a" },
      { type: "call.start", id: "b", name: "weather" },
      { type: "call.delta", id: "b", text: "[]" },
      { type: "call.end", id: "b" },
      { type: "call.start", id: "c", name: "weather" },
      { type: "call.delta", id: "c", text: "{" },
      { type: "call.end", id: "c" },
      {
        type: "part",
        part: {
          type: "provider_call",
          callId: "d",
          name: "search",
          input: { q: 1 },
          meta: { model: "m", toolName: "search" },
        },
      },
      {
        type: "part",
        part: {
          type: "provider_result",
          callId: "d",
          name: "search",
          status: "ok",
          output: { found: 2 },
          meta: { model: "m", toolName: "search" },
        },
      },
    ],
  );
});

Deno.test("aiSdk() ignores part types that have no event", async () => {
  const parts = [
    "stream-start",
    "response-metadata",
    "ping",
    "raw",
    "source",
    "file",
    "tool-result",
    "text-end",
  ];
  assertEquals(await eventsOf(null, ...parts.map((type) => ({ type }))), []);
});

Deno.test("aiSdk() warns once of each kind of part that it does not know, and throws for a question of the provider", async () => {
  const warnings = ["custom", "reasoning-file"].map((type) =>
    ({ type: "warning", message: `The response of m contains a part of type "${type}".` }) as const
  );
  assertEquals(await eventsOf({ type: "custom" }, { type: "reasoning-file" }, { type: "custom" }), warnings);
  const asked = await eventsOf({ type: "tool-approval-request", approvalId: "a", toolCallId: "b" }).catch(String);
  assertEquals(
    asked,
    "ModelError: Cannot read the response of m: its provider asks before it runs a call, which aiSdk() cannot answer",
  );
});

Deno.test("aiSdk() sends provider metadata back with its reasoning, text or call", async () => {
  const { asked, model } = fake([
    { type: "reasoning-start", id: "1", providerMetadata: { p: { id: "r" } } },
    { type: "reasoning-delta", id: "1", delta: "Hm." },
    { type: "reasoning-end", id: "1", providerMetadata: { p: { signature: "c2ln" } } },
    { type: "reasoning-start", id: "2" },
    { type: "reasoning-delta", id: "2", delta: "So." },
    { type: "reasoning-end", id: "2" },
    { type: "text-start", id: "3", providerMetadata: { p: { id: "t" } } },
    { type: "text-delta", id: "3", delta: "Let me see." },
    { type: "tool-call", toolCallId: "a", toolName: "weather", input: "{}", providerMetadata: { p: { id: "c" } } },
    { type: "tool-call", toolCallId: "b", toolName: "weather", input: "{}" },
    finish,
  ]);
  await agent({ model: aiSdk(model), tools: [weather], limits: { turns: 2 } }).run("Hi").result;
  const [, assistant] = asked[1]?.prompt as unknown[];
  const call = (toolCallId: string) => ({ type: "tool-call", toolCallId, toolName: "weather", input: {} });
  assertEquals(assistant, {
    role: "assistant",
    content: [
      { type: "reasoning", text: "Hm.", providerOptions: { p: { signature: "c2ln" } } },
      { type: "reasoning", text: "So." },
      { type: "text", text: "Let me see.", providerOptions: { p: { id: "t" } } },
      { ...call("a"), providerOptions: { p: { id: "c" } } },
      call("b"),
    ],
  });
});

Deno.test("aiSdk() maps finish reasons and token counts of each specification", async () => {
  const ended = async (finishReason: unknown, usage: unknown) =>
    (await readAll(aiSdk(fake([{ type: "finish", finishReason, usage }]).model))).flat();
  assertEquals(await ended({ unified: "stop" }, finish.usage), [end]);
  assertEquals(await ended("stop", { inputTokens: 9, outputTokens: 2, cachedInputTokens: 5 }), [end]);
  const details = { ...end, usage: { input: 9, output: 2, cached: 5, cacheWrite: 3, reasoning: 1 } };
  const inputTokens = { total: 9, cacheRead: 5, cacheWrite: 3 };
  assertEquals(await ended("stop", { inputTokens, outputTokens: { total: 2, reasoning: 1 } }), [details]);
  const { cacheWrite: _, ...older } = details.usage;
  const numbers = { inputTokens: 9, outputTokens: 2, cachedInputTokens: 5, reasoningTokens: 1 };
  assertEquals(await ended("stop", numbers), [{ ...end, usage: older }]);
  const reasons = { "tool-calls": "calls", length: "length", "content-filter": "filter", unknown: "other" } as const;
  for (const [theirs, reason] of Object.entries(reasons)) {
    assertEquals(await ended(theirs, undefined), [{ type: "finish", reason }]);
  }
});

Deno.test("aiSdk() throws a ModelError for every kind of failure and sets recoverable", async () => {
  const api = (more: object) => Object.assign(new Error("No."), { requestBodyValues: { huge: true }, ...more });
  const refusing = (error: unknown): AiSdkModel => ({ ...fake().model, doStream: () => Promise.reject(error) });
  const cut = ReadableStream.from((async function* () {
    yield { type: "text-delta", id: "1", delta: "So" };
    await Promise.reject(new TypeError("reset"));
  })());
  const cases: [model: AiSdkModel, message: string, recoverable: boolean][] = [
    [refusing(api({ statusCode: 503, isRetryable: true })), "Cannot ask m: 503 No.", true],
    [
      refusing(api({ statusCode: 400, isRetryable: false, data: { error: { message: "Bad." } } })),
      "Cannot ask m: 400 Bad.",
      false,
    ],
    [refusing(api({ isRetryable: true })), "Cannot ask m: No.", true],
    [refusing(api({ isRetryable: false })), "Cannot ask m: No.", false],
    [refusing(new Error("The key is missing")), "Cannot ask m: its provider failed", false],
    [
      fake([{ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }]).model,
      "Cannot ask m: Overloaded",
      true,
    ],
    [fake([{ type: "error", error: "No." }]).model, "Cannot ask m: No.", true],
    [
      fake([{ type: "error", error: new TypeError("shape") }]).model,
      "Cannot read the response of m: the stream was cut or is invalid",
      true,
    ],
    [
      fake([{ type: "finish", finishReason: { unified: "error" } }]).model,
      "Cannot read the response of m: the stream was cut or is invalid",
      true,
    ],
    [
      fake([{ type: "finish", finishReason: { unified: "interrupted" } }]).model,
      "Cannot read the response of m: the stream was cut or is invalid",
      true,
    ],
    [
      { ...fake().model, doStream: () => Promise.resolve({ stream: cut }) },
      "Cannot read the response of m: the stream was cut or is invalid",
      true,
    ],
  ];
  for (const [model, message, recoverable] of cases) {
    const error = await errorOf(readAll(aiSdk(model)));
    if (!(error instanceof ModelError)) throw error;
    assertEquals([error.message, error.recoverable], [message, recoverable]);
  }
});

Deno.test("aiSdk() passes its signal on and throws the reason of an abort", async () => {
  const { asked, model } = fake();
  const controller = new AbortController();
  await readAll(aiSdk(model), {}, controller.signal);
  assertEquals(asked[0]?.abortSignal, controller.signal);
  const reason = new Error("enough");
  controller.abort(reason);
  const refusing = { ...model, doStream: () => Promise.reject(new DOMException("Aborted", "AbortError")) };
  assertEquals(await errorOf(readAll(aiSdk(refusing), {}, controller.signal)), reason);
});

/** Models of @ai-sdk/openai that receive this response, by version. */
function modelsWith(response: () => Response): readonly AiSdkModel[] {
  const settings = { apiKey: "sk-0123456789", fetch: () => Promise.resolve(response()) };
  return [createV4(settings).chat("m"), createV3(settings).chat("m"), createV2(settings).chat("m")];
}

Deno.test("aiSdk() throws a recoverable error wherever the stream of @ai-sdk/openai is cut", async () => {
  const { stream, finished } = chatCompletions;
  const frames = stream.slice(0, stream.search(finished)).split(/(?<=\n\n)/);
  const reset = new TypeError("connection reset");
  for (let count = 0; count < frames.length; count++) {
    const pieces = frames.slice(0, count);
    for (const response of [respond(...pieces), respond(...pieces, reset)]) {
      for (const model of modelsWith(response)) {
        const error = await errorOf(readAll(aiSdk(model)));
        if (!(error instanceof ModelError)) throw error;
        assertEquals([error.recoverable, error.code], [true, "unavailable"]);
      }
    }
  }
});

Deno.test("aiSdk() names a page or JSON instead of a stream", async () => {
  for (const type of ["text/html", "application/json"]) {
    const headers = { "content-type": `${type}; charset=utf-8` };
    for (const model of modelsWith(() => new Response("{}", { headers }))) {
      const error = await errorOf(readAll(aiSdk(model)));
      if (!(error instanceof ModelError)) throw error;
      assertEquals([error.message, error.recoverable], [
        `Cannot read the response of m: expected an event stream, got ${type} without events`,
        false,
      ]);
    }
  }
});

Deno.test("aiSdk() keeps a response with tokens but an unknown finish reason", async () => {
  const usage = { inputTokens: 9, outputTokens: 2, cachedInputTokens: 5 };
  const model = fake([{ type: "finish", finishReason: "unknown", usage }], "v2").model;
  assertEquals((await readAll(aiSdk(model))).flat(), [{ ...end, reason: "other" }]);
});

Deno.test("aiSdk() neither sends nor emits half a character", async () => {
  const url = "https://example.com/a.png";
  const linked = { type: "media", mediaType: "image/png", url } as const;
  const { prompt } = await requestFor({ instructions: "\ud83e", messages: [{ role: "user", parts: [linked] }] });
  assertEquals(prompt, [
    { role: "system", content: "\ufffd" },
    { role: "user", content: [{ type: "file", mediaType: "image/png", data: { type: "url", url: new URL(url) } }] },
  ]);
  const delta = (delta: string) => ({ type: "text-delta", id: "1", delta });
  assertEquals(await eventsOf(delta("a\ud83e"), delta("\ude9d\ud83e")), [
    { type: "text", text: "a" },
    { type: "text", text: "\u{1fa9d}" },
    { type: "text", text: "\ufffd" },
  ]);
});
