import { agent, type Message, ModelError, type ModelRequest, text, tool, user } from "@jizai/jizai";
import { openaiResponses, type OpenAIResponsesOptions } from "@jizai/jizai/model/openai_responses";
import { providerTool } from "@jizai/jizai/provider_tools";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { key, schema, weather } from "../support/providers/api.ts";
import {
  functionCall,
  message,
  reasoning,
  reasoningItem,
  responseStream,
  usage,
} from "../support/providers/openai_responses.ts";
import { errorOf, readAll, recordRequests, respond, sse } from "../support/providers/sse.ts";

/** Returns the events of a response. */
async function eventsIn(stream: string) {
  return (await readAll(openaiResponses({ model: "m", fetch: respond(stream) }))).flat();
}

/** Returns the HTTP request that a model request becomes. */
async function requestFor(request: Partial<ModelRequest>, options: Partial<OpenAIResponsesOptions> = {}) {
  const { sent, fetch } = recordRequests(responseStream([]));
  await readAll(openaiResponses({ model: "m", fetch, ...options }), request);
  return sent[0]!;
}

async function inputFor(...messages: readonly Message[]) {
  return (await requestFor({ messages })).body.input;
}

const searchItem = {
  id: "ws_1",
  type: "web_search_call",
  status: "completed",
  action: { type: "search", query: "weather Kyoto" },
};

Deno.test("openaiResponses() sends the key and every field of the request to OpenAI", async () => {
  const { url, headers, body } = await requestFor({
    instructions: "Be kind.",
    messages: [user("Hi")],
    tools: [weather, providerTool({ type: "web_search" }).definition],
    options: { maxTokens: 9, temperature: 0 },
  }, { apiKey: key, summary: "auto" });
  assertEquals(url, "https://api.openai.com/v1/responses");
  assertEquals(headers, { "content-type": "application/json", authorization: `Bearer ${key}` });
  assertEquals(body, {
    model: "m",
    instructions: "Be kind.",
    input: [{ role: "user", content: "Hi" }],
    tools: [
      { type: "web_search" },
      { type: "function", name: "weather", description: "Current weather", parameters: schema, strict: false },
    ],
    stream: true,
    store: false,
    include: ["reasoning.encrypted_content", "web_search_call.action.sources"],
    reasoning: { summary: "auto" },
    temperature: 0,
    max_output_tokens: 9,
  });
});

Deno.test("openaiResponses() leaves out what is missing, and encrypted reasoning for models without reasoning", async () => {
  assertEquals((await requestFor({ messages: [user("Hi")] }, { model: "gpt-4.1-mini" })).body, {
    model: "gpt-4.1-mini",
    input: [{ role: "user", content: "Hi" }],
    stream: true,
    store: false,
  });
});

Deno.test("openaiResponses() sends the conversation: calls, results in order, files in results", async () => {
  const image = { type: "media", mediaType: "image/png", data: "AA" } as const;
  const input = await inputFor(
    {
      role: "user",
      parts: [
        { type: "text", text: "Look" },
        image,
        { type: "media", mediaType: "image/jpeg", url: "https://example.com/a.jpg" },
        { type: "media", mediaType: "application/pdf", data: "AA" },
        { type: "media", mediaType: "application/pdf", url: "https://example.com/a.pdf" },
        { type: "media", mediaType: "video/mp4", data: "AA" },
      ],
    },
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
        { callId: "a", name: "weather", status: "ok", parts: [{ type: "text", text: "Sunny" }, image] },
        { callId: "b", name: "weather", status: "error", parts: [{ type: "text", text: "No." }] },
      ],
    },
  );
  const png = { type: "input_image", image_url: "data:image/png;base64,AA", detail: "auto" };
  assertEquals(input, [
    {
      role: "user",
      content: [
        { type: "input_text", text: "Look" },
        png,
        { type: "input_image", image_url: "https://example.com/a.jpg", detail: "auto" },
        { type: "input_file", filename: "file.pdf", file_data: "data:application/pdf;base64,AA" },
        { type: "input_file", file_url: "https://example.com/a.pdf" },
        { type: "input_text", text: "[A file of type video/mp4, which you cannot be shown.]" },
      ],
    },
    { role: "assistant", content: "Let me see." },
    { type: "function_call", call_id: "a", name: "weather", arguments: '{"city":"Kyoto"}' },
    { type: "function_call", call_id: "b", name: "weather", arguments: '{"input":"Oslo"}' },
    { type: "function_call_output", call_id: "a", output: [{ type: "input_text", text: "Sunny" }, png] },
    { type: "function_call_output", call_id: "b", output: "No." },
  ]);
});

Deno.test("openaiResponses() sends reasoning, built-in tool items and phases back to the model, in order", async () => {
  const commentary = message(2, "Let me see.").map((event) =>
    "item" in event ? { ...event, item: { ...Object(event.item), phase: "commentary" } } : event
  );
  const { sent, fetch } = recordRequests(
    responseStream([
      ...reasoning,
      { type: "response.output_item.added", output_index: 1, item: { ...searchItem, status: "in_progress" } },
      { type: "response.web_search_call.searching", output_index: 1, item_id: "ws_1" },
      { type: "response.output_item.done", output_index: 1, item: searchItem },
      ...commentary,
      ...functionCall(3, "call_a", "rest", "{}"),
    ]),
    responseStream(message(0, "Done.")),
  );
  const rest = tool({ name: "rest", description: "Rests", input: z.object({}), execute: () => text("Rested") });
  const { messages } = await agent({ model: openaiResponses({ model: "m", fetch }), tools: [rest] }).run("Hi").result;
  const items = [
    reasoningItem,
    searchItem,
    { role: "assistant", content: "Let me see.", phase: "commentary" },
    { type: "function_call", call_id: "call_a", name: "rest", arguments: "{}" },
  ];
  assertEquals(sent[1]?.body.input.slice(1, -1), items);

  const other = await requestFor({ messages }, { model: "gpt-6" });
  assertEquals(other.body.input.slice(1, 5), [
    {
      role: "assistant",
      content: '[You called web_search with {"type":"search","query":"weather Kyoto"}]',
    },
    { role: "assistant", content: "[web_search returned null]" },
    { role: "assistant", content: "Let me see." },
    items[3],
  ]);
});

Deno.test("openaiResponses() leaves out reasoning that nothing follows, which OpenAI rejects", async () => {
  const noted = { type: "reasoning", text: "Hm.", meta: { model: "m", item: reasoningItem } } as const;
  assertEquals(await inputFor({ role: "assistant", parts: [noted] }, user("Hi")), [{ role: "user", content: "Hi" }]);
});

Deno.test("openaiResponses() separates the summaries of reasoning", async () => {
  const part = { type: "response.reasoning_summary_part.added", output_index: 0 };
  const delta = { type: "response.reasoning_summary_text.delta", output_index: 0 };
  const events = await eventsIn(responseStream([
    { ...part, summary_index: 0 },
    { ...delta, delta: "One." },
    { ...part, summary_index: 1 },
    { ...delta, delta: "Two." },
  ]));
  assertEquals(events.slice(0, -1).map((event) => "text" in event && event.text), ["One.", "\n\n", "Two."]);
});

Deno.test("openaiResponses() streams a refusal as text and finishes with refusal", async () => {
  const events = await eventsIn(responseStream([
    { type: "response.refusal.delta", output_index: 0, delta: "I can" },
    { type: "response.refusal.delta", output_index: 0, delta: "not." },
  ]));
  assertEquals(events, [
    { type: "text", text: "I can" },
    { type: "text", text: "not." },
    { type: "part", part: { type: "refusal", text: "I cannot." } },
    { type: "finish", reason: "refusal", usage: { input: 7, output: 7 }, id: "resp_1" },
  ]);
});

Deno.test("openaiResponses() counts tokens of cache writes and of reasoning", async () => {
  const counts = {
    ...usage(9, 5, 3),
    input_tokens_details: { cached_tokens: 3, cache_write_tokens: 2 },
    output_tokens_details: { reasoning_tokens: 4 },
  };
  const last = { type: "response.completed", response: { status: "completed", output: [], usage: counts } };
  assertEquals(await eventsIn(sse([last])), [
    { type: "finish", reason: "stop", usage: { input: 9, output: 5, cached: 3, cacheWrite: 2, reasoning: 4 } },
  ]);
});

Deno.test("openaiResponses() maps the reasons of incomplete responses and counts cached tokens", async () => {
  const reasons = { max_output_tokens: "length", content_filter: "filter", something: "other" } as const;
  for (const [theirs, reason] of Object.entries(reasons)) {
    const response = { status: "incomplete", incomplete_details: { reason: theirs }, usage: usage(9, 2, 5) };
    const last = { type: "response.incomplete", response };
    assertEquals(await eventsIn(sse([...functionCall(0, "a", "weather", "{").slice(0, 2), last])), [
      { type: "call.start", id: "a", name: "weather" },
      { type: "call.delta", id: "a", text: "{" },
      { type: "finish", reason, usage: { input: 9, output: 2, cached: 5 } },
    ]);
  }
});

Deno.test("openaiResponses() throws the error of a failed response", async () => {
  const cases = [
    [{ code: "rate_limit_exceeded", message: "Slow down" }, "rate_limited", true],
    [{ code: "server_error", message: "Slow down" }, "unavailable", true],
    [{ code: "invalid_prompt", message: "Slow down" }, "internal", false],
  ] as const;
  for (const [error, code, recoverable] of cases) {
    const failed = sse([{ type: "response.failed", response: { status: "failed", error } }]);
    const thrown = await errorOf(eventsIn(failed));
    if (!(thrown instanceof ModelError)) throw thrown;
    assertEquals([thrown.message, thrown.code, thrown.recoverable], ["Cannot ask m: Slow down", code, recoverable]);
  }
});

Deno.test("openaiResponses() reads items without deltas, and calls without an added event or an id", async () => {
  const done = (output_index: number, item: object) => ({ type: "response.output_item.done", output_index, item });
  const content = [{ type: "output_text", text: "So." }, { type: "refusal", refusal: "No." }];
  const events = await eventsIn(responseStream([
    done(0, { type: "message", content }),
    done(1, { type: "function_call", name: "weather", arguments: "{}" }),
    done(2, { type: "function_call", call_id: "b", name: "weather", arguments: "" }),
  ]));
  assertEquals(events.slice(0, -1), [
    { type: "text", text: "So." },
    { type: "text", text: "No." },
    { type: "call.start", id: "call_0", name: "weather" },
    { type: "call.delta", id: "call_0", text: "{}" },
    { type: "call.end", id: "call_0" },
    { type: "call.start", id: "b", name: "weather" },
    { type: "call.end", id: "b" },
    { type: "part", part: { type: "refusal", text: "No." } },
  ]);
});

Deno.test("openaiResponses() reads texts and inputs wherever a server sends them", async () => {
  const call = (output_index: number, more: object) => ({
    type: "function_call",
    call_id: `c${output_index}`,
    name: "weather",
    ...more,
  });
  const added = (output_index: number, item: object) => ({ type: "response.output_item.added", output_index, item });
  const done = (output_index: number, item: object) => ({ type: "response.output_item.done", output_index, item });
  const message = {
    type: "message",
    id: "m",
    content: [{ type: "output_text", text: "A" }, { type: "output_text", text: "B" }],
  };
  const late = { type: "message", id: "late", content: [{ type: "output_text", text: "C" }] };
  const events = await eventsIn(responseStream([
    added(0, { type: "message", id: "m", content: [] }),
    { type: "response.output_text.delta", output_index: 0, content_index: 0, delta: "A" },
    { type: "response.output_text.done", output_index: 0, content_index: 0, text: "A" },
    { type: "response.output_text.done", output_index: 0, content_index: 1, text: "B" },
    done(0, message),
    done(1, call(1, { arguments: { city: "Kyoto" }, status: "completed" })),
    added(2, call(2, { arguments: "" })),
    { type: "response.function_call_arguments.done", output_index: 2, arguments: '{"city":"Oslo"}' },
    done(2, call(2, { status: "completed" })),
    added(3, call(3, { arguments: '{"city":"Bergen"}' })),
    done(3, call(3, { arguments: "", status: "completed" })),
  ], { output: [message, call(1, {}), call(2, {}), call(3, {}), late] }));
  const inputs = ['{"city":"Kyoto"}', '{"city":"Oslo"}', '{"city":"Bergen"}'];
  assertEquals(events, [
    { type: "text", text: "A" },
    { type: "text", text: "B" },
    ...inputs.flatMap((text, index) =>
      [
        { type: "call.start", id: `c${index + 1}`, name: "weather" },
        { type: "call.delta", id: `c${index + 1}`, text },
        { type: "call.end", id: `c${index + 1}` },
      ] as const
    ),
    { type: "text", text: "C" },
    { type: "finish", reason: "calls", usage: { input: 7, output: 7 }, id: "resp_1" },
  ]);
});

Deno.test("openaiResponses() sends the namespace and the caller of a call back", async () => {
  const more = { namespace: "crm", caller: { type: "program", caller_id: "p_1" } };
  const item = { type: "function_call", call_id: "c", name: "rest", arguments: "{}", status: "completed", ...more };
  const { sent, fetch } = recordRequests(
    responseStream([{ type: "response.output_item.done", output_index: 0, item }]),
    responseStream(message(0, "Done.")),
  );
  const rest = tool({ name: "rest", description: "Rests", input: z.object({}), execute: () => text("Rested") });
  await agent({ model: openaiResponses({ model: "m", fetch }), tools: [rest] }).run("Hi").result;
  const { status: _, ...sentBack } = item;
  assertEquals(sent[1]?.body.input[1], sentBack);
});

Deno.test("openaiResponses() throws for a call that only a client can run, unless the provider has run it", async () => {
  const done = (output_index: number, item: object) => ({ type: "response.output_item.done", output_index, item });
  for (const type of ["local_shell_call", "shell_call", "apply_patch_call", "custom_tool_call", "computer_call"]) {
    const call = done(0, { type, id: "i", call_id: "c", status: "completed" });
    assertEquals(
      await eventsIn(responseStream([call])).catch(String),
      `ModelError: Cannot answer a call of m: it is of type "${type}", which only a client can run`,
    );
    const output = done(1, { type: `${type}_output`, call_id: "c", output: [] });
    assertEquals((await eventsIn(responseStream([call, output]))).at(-1)?.type, "finish");
  }
});

Deno.test("openaiResponses() reports a search that never finished as an error", async () => {
  const item = {
    type: "web_search_call",
    id: "ws_1",
    status: "in_progress",
    action: { type: "search", query: "Kyoto" },
  };
  const events = await eventsIn(responseStream([{ type: "response.output_item.done", output_index: 0, item }]));
  const parts = events.flatMap((event) =>
    event.type === "part" && event.part.type === "provider_result" ? [event.part.status] : []
  );
  assertEquals(parts, ["error"]);
});

Deno.test("openaiResponses() ignores events that it does not know", async () => {
  const events = await eventsIn(responseStream([
    {},
    { type: "response.queued" },
    { type: "response.output_text.delta", output_index: 0 },
    { type: "response.function_call_arguments.delta", output_index: 9, delta: "{}" },
    { type: "response.output_item.added", output_index: 0, item: null },
    { type: "response.output_item.done", output_index: 0 },
    { type: "response.output_text.annotation.added", output_index: 0, annotation: {} },
  ]));
  assertEquals(events, [{ type: "finish", reason: "stop", usage: { input: 7, output: 7 }, id: "resp_1" }]);
});

Deno.test("openaiResponses() requests an output, in strict mode if the schema allows it", async () => {
  const formatFor = async (output: Record<string, unknown>) => (await requestFor({ options: { output } })).body.text;
  const format = { type: "json_schema", name: "output" };
  assertEquals(await formatFor({ $schema: "draft", ...schema }), {
    format: { ...format, strict: true, schema: { ...schema, additionalProperties: false } },
  });
  const loose = { type: "object", properties: { city: { type: "string" } } };
  assertEquals(await formatFor(loose), { format: { ...format, strict: false, schema: loose } });
  assertEquals(await formatFor({ type: "string" }), undefined);
});
