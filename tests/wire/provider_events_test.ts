import { agent, type Middleware, serve } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals } from "@std/assert";
import OpenAI from "npm:openai@7.57.0";
import { chunksOf, reaching } from "../support/chat.ts";
import { eventsOf, post } from "../support/requests.ts";

const call = { type: "provider_call", callId: "s1", name: "web_search", input: { query: "sun" } } as const;
const result = { type: "provider_result", callId: "s1", name: "web_search", status: "ok", output: ["u"] } as const;
const source = { type: "source", url: "https://a.example/", title: "A" } as const;
const searching = {
  reads: [
    [{ type: "part", part: call }],
    [{ type: "part", part: result }],
    [{ type: "part", part: source }, { type: "text", text: "Sunny." }],
    [{ type: "finish", reason: "stop" }],
  ],
} as const;

function served(model = scripted(searching)) {
  return serve(agent({ model }), { wires: [aiSdkUi(), agUi(), chatCompletions(), responses()] });
}

const openaiOf = (app: ReturnType<typeof served>) =>
  new OpenAI({ apiKey: "sk-none", baseURL: "http://localhost/v1", fetch: reaching(app), maxRetries: 0 });

/** The request of an AI SDK page, and that of an AG-UI client. */
const chatRequest = { id: "chat", messages: [{ id: "m1", role: "user", parts: [{ type: "text", text: "Hi" }] }] };
const agUiRequest = { threadId: "t", runId: "r", messages: [{ id: "m1", role: "user", content: "Hi" }] };

/** Reads the frames of AG-UI. */
async function agUiFrames(app: ReturnType<typeof served>) {
  const text = await (await post(app, "/ag-ui", agUiRequest)).text();
  return text.split("\n\n").filter(Boolean).map((frame) => JSON.parse(frame.slice("data: ".length)));
}

Deno.test("a call that the provider runs is announced by events of its own, each once", async () => {
  const events = await eventsOf(post(served(), "/runs", { prompt: "Hi" }));
  const from = events.findIndex(({ type }) => type === "model.started") + 1;
  const to = events.findIndex(({ type }) => type === "model.finished");
  assertEquals(events.slice(from, to).map(({ id: _, ...event }) => event), [
    { type: "provider_tool.started", turn: 1, part: 0, content: call },
    { type: "provider_tool.finished", turn: 1, part: 1, content: result },
    { type: "part.added", turn: 1, part: 2, content: source },
    { type: "text.delta", turn: 1, part: 3, text: "Sunny." },
  ]);
});

Deno.test("useChat receives a call that the provider runs as two chunks of a tool part", async () => {
  const chunks = await chunksOf(post(served(), "/chat", chatRequest));
  assertEquals(chunks.slice(2, -5), [
    {
      type: "tool-input-available",
      toolCallId: "s1",
      providerExecuted: true,
      toolName: "web_search",
      input: call.input,
    },
    { type: "tool-output-available", toolCallId: "s1", providerExecuted: true, output: result.output },
    { type: "source-url", sourceId: "1.2", url: source.url, title: "A" },
  ]);
});

Deno.test("AG-UI clients receive a call that the provider runs as the events of one call", async () => {
  const frames = await agUiFrames(served());
  assertEquals(frames.map(({ type }) => type), [
    "RUN_STARTED",
    "STEP_STARTED",
    "TOOL_CALL_START",
    "TOOL_CALL_ARGS",
    "TOOL_CALL_END",
    "TOOL_CALL_RESULT",
    "CUSTOM",
    "TEXT_MESSAGE_START",
    "TEXT_MESSAGE_CONTENT",
    "TEXT_MESSAGE_END",
    "STEP_FINISHED",
    "RUN_FINISHED",
  ]);
});

Deno.test("chat completions stream a call that the provider runs, its output and sources at the end, in one chunk", async () => {
  const stream = await openaiOf(served()).chat.completions.create({
    model: "any",
    messages: [{ role: "user", content: "Hi" }],
    stream: true,
  });
  const deltas = (await Array.fromAsync(stream)).map(({ choices: [choice] }) => choice?.delta);
  const url_citation = { url: source.url, title: "A", start_index: 0, end_index: 0 };
  assertEquals<unknown>(deltas, [
    { role: "assistant", content: "" },
    { content: "Sunny." },
    {
      executed_tools: [{ id: "s1", type: "web_search", arguments: '{"query":"sun"}', output: '["u"]' }],
      annotations: [{ type: "url_citation", url_citation }],
    },
    {},
  ]);
});

Deno.test("Responses stream a call that the provider runs as one item, and a source before the text as its annotation", async () => {
  const stream = openaiOf(served()).responses.stream({ input: "Hi" });
  const types: string[] = [];
  stream.on("event", ({ type }) => void types.push(type.replace("response.", "")));
  const { output } = await stream.finalResponse();
  assertEquals(types, [
    "created",
    "output_item.added",
    "output_item.done",
    "output_item.added",
    "content_part.added",
    "output_text.annotation.added",
    "output_text.delta",
    "output_text.done",
    "content_part.done",
    "output_item.done",
    "completed",
  ]);
  assertEquals(output.map(({ type }) => type), ["web_search_call", "message"]);
  const content = output[1]?.type === "message" ? output[1].content[0] : undefined;
  const annotation = { type: "url_citation", url: source.url, title: "A", start_index: 0, end_index: 0 };
  assertEquals<unknown>(content, { type: "output_text", text: "Sunny.", annotations: [annotation], parsed: null });
});

Deno.test("Responses contain a document without address as a file citation, and a result whose call came earlier", async () => {
  const reads = [
    [{ type: "part", part: result }, { type: "text", text: "Sunny." }],
    [{ type: "part", part: { type: "source", title: "a.pdf" } }],
    [{ type: "finish", reason: "stop" }],
  ] as const;
  const { output } = await openaiOf(served(scripted({ reads }))).responses.create({ input: "Hi" });
  assertEquals<unknown>(output.map((item) => item.type === "message" ? item.content : item), [
    { id: "s1", status: "completed", type: "web_search_call", action: { type: "search", queries: [""] } },
    [{
      type: "output_text",
      text: "Sunny.",
      annotations: [{ type: "file_citation", file_id: "", filename: "a.pdf", index: 6 }],
    }],
  ]);
});

Deno.test("Responses keep the calls that the provider ran if a hook replaces the text", async () => {
  const model = scripted(searching);
  const shouting: Middleware = {
    async model(_, next) {
      const response = await next();
      const parts = response.parts.map((part) => part.type === "text" ? { ...part, text: "SUNNY." } : part);
      return { ...response, parts };
    },
  };
  const app = serve(agent({ model, use: [shouting] }), { wires: [responses()] });
  const { output, output_text } = await openaiOf(app).responses.create({ input: "Hi" });
  assertEquals([output.map(({ type }) => type), output_text], [["web_search_call", "message"], "SUNNY."]);
});

Deno.test("useChat and AG-UI show the calls that the provider runs for a subagent", async () => {
  const child = () => asTool(agent({ name: "child", model: scripted(searching) }));
  const parent = () => scripted({ calls: [["child", { prompt: "Weather?" }]] }, "Sunny there.");
  const app = () => serve(agent({ model: parent(), tools: [child()] }), { wires: [aiSdkUi(), agUi()] });
  const chunks = await chunksOf(post(app(), "/chat", chatRequest));
  assertEquals(chunks.filter(({ providerExecuted }) => providerExecuted), [
    {
      type: "tool-input-available",
      toolCallId: "call_1/s1",
      providerExecuted: true,
      toolName: "web_search",
      input: call.input,
    },
    { type: "tool-output-available", toolCallId: "call_1/s1", providerExecuted: true, output: result.output },
  ]);
  const frames = await agUiFrames(app());
  assertEquals(
    frames.flatMap(({ type, toolCallId }) => toolCallId === "call_1/s1" ? [type] : []),
    ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"],
  );
});

Deno.test("Responses encode the calls of a provider in the log of an earlier version", () => {
  const [route] = responses().routes("agent", { "~definition": {} });
  const request = route?.parse({
    params: {},
    body: { input: "Hi", stream: true },
    session: undefined,
    header: () => undefined,
  });
  if (request?.type !== "chat" || request.reply.type !== "stream") throw new Error("Expected a streamed run");
  const encode = request.reply.encoder();
  const frames = [call, result].map((content, part) => {
    const event = { type: "part.added", turn: 1, part, content } as never; // an event of the earlier version
    return JSON.parse(encode(event, part + 1).slice("data: ".length));
  });
  assertEquals(frames.map(({ type, item }) => [type, item.type, item.status]), [
    ["response.output_item.added", "web_search_call", "in_progress"],
    ["response.output_item.done", "web_search_call", "completed"],
  ]);
});
