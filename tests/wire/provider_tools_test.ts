import { agent, serve } from "@jizai/jizai";
import { client } from "@jizai/jizai/client";
import { scripted } from "@jizai/jizai/model/scripted";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals } from "@std/assert";
import { HttpAgent } from "npm:@ag-ui/client@1.0.0";
import OpenAI from "npm:openai@7.57.0";
import { Chat, reaching } from "../support/chat.ts";

const search = {
  type: "provider_call",
  callId: "s1",
  name: "web_search",
  input: { query: "weather" },
  meta: { a: 1 },
} as const;
const found = {
  type: "provider_result",
  callId: "s1",
  name: "web_search",
  status: "ok",
  output: [{ url: "u" }],
} as const;
const roll = { type: "provider_call", callId: "r1", name: "roll", server: "dice", input: { sides: 6 } } as const;
const failed = {
  type: "provider_result",
  callId: "r1",
  name: "roll",
  status: "error",
  output: { code: "down" },
} as const;
const code = { type: "provider_call", callId: "c1", name: "code_execution", input: { command: "ls" } } as const;
const ran = { type: "provider_result", callId: "c1", name: "code_execution", status: "ok", output: "a.txt" } as const;
const cut = { type: "provider_call", callId: "f1", name: "file_search", input: { queries: ["q"] } } as const;
const parts = [search, found, roll, failed, code, ran, cut];
const reads = [
  [{ type: "text", text: "Let me see. " }],
  ...parts.map((part) => [{ type: "part", part }] as const),
  [{ type: "text", text: "Done." }],
  [{ type: "finish", reason: "length" }],
] as const;

function served() {
  const wires = [aiSdkUi(), aiSdkMessages(), agUi(), chatCompletions(), responses()];
  return serve(agent({ model: scripted({ reads }) }), { wires });
}

function openaiOf(app: ReturnType<typeof served>) {
  return new OpenAI({ apiKey: "sk-none", baseURL: "http://localhost/v1", fetch: reaching(app), maxRetries: 0 });
}

Deno.test("useChat shows calls that the provider runs as its own parts, also after a reload", async () => {
  const app = served();
  const chat = new Chat(app);
  await chat.sendMessage({ text: "Hi" });
  const expected = [
    { type: "tool-web_search", toolCallId: "s1", state: "output-available", input: search.input, output: found.output },
    { type: "tool-roll", toolCallId: "r1", state: "output-error", input: roll.input, errorText: '{"code":"down"}' },
    { type: "tool-code_execution", toolCallId: "c1", state: "output-available", input: code.input, output: "a.txt" },
    { type: "tool-file_search", toolCallId: "f1", state: "input-available", input: cut.input },
  ].map((part) => ({ ...part, providerExecuted: true }));
  const toolParts = (given: readonly { readonly type: string }[]) =>
    given.filter(({ type }) => type.startsWith("tool-"));
  assertEquals<unknown>(JSON.parse(JSON.stringify(toolParts(chat.lastMessage?.parts ?? []))), expected);
  const [, reloaded] = await (await app.request("/chat/chat")).json();
  assertEquals<unknown>(toolParts(reloaded.parts), expected);
});

Deno.test("AG-UI clients receive calls that the provider runs as calls with results", async () => {
  const agent = new HttpAgent({ url: "/ag-ui", threadId: "t", fetch: reaching(served()) });
  agent.addMessage({ id: "m1", role: "user", content: "Hi" });
  const { newMessages } = await agent.runAgent();
  const calls = newMessages.flatMap((message) => message.role === "assistant" ? message.toolCalls ?? [] : []);
  const results = newMessages.flatMap((message) => message.role === "tool" ? [message] : []);
  assertEquals(calls.map(({ id, function: { name, arguments: input } }) => [id, name, JSON.parse(input)]), [
    ["s1", "web_search", search.input],
    ["r1", "roll", roll.input],
    ["c1", "code_execution", code.input],
    ["f1", "file_search", cut.input],
  ]);
  assertEquals(results.map(({ toolCallId, content }) => [toolCallId, JSON.parse(String(content))]), [
    ["s1", found.output],
    ["r1", failed.output],
    ["c1", ran.output],
  ]);
});

Deno.test("chat completions contain calls that the provider runs as executed tools, streamed and whole", async () => {
  const messages = [{ role: "user" as const, content: "Hi" }];
  const whole = await openaiOf(served()).chat.completions.create({ model: "any", messages });
  const message = whole.choices[0]?.message as unknown as Record<string, unknown>; // an extension
  const executed = [
    { id: "s1", type: "web_search", arguments: '{"query":"weather"}', output: '[{"url":"u"}]' },
    { id: "r1", type: "roll", arguments: '{"sides":6}', output: '{"code":"down"}' },
    { id: "c1", type: "code_execution", arguments: '{"command":"ls"}', output: '"a.txt"' },
    { id: "f1", type: "file_search", arguments: '{"queries":["q"]}' },
  ];
  assertEquals([message.content, message.executed_tools], ["Let me see. Done.", executed]);

  const merged = new Map<string, object>();
  for await (
    const { choices } of await openaiOf(served()).chat.completions.create({ model: "any", messages, stream: true })
  ) {
    const { executed_tools = [] } = (choices[0]?.delta ?? {}) as { executed_tools?: { id: string }[] }; // an extension
    for (const tool of executed_tools) merged.set(tool.id, { ...merged.get(tool.id), ...tool });
  }
  assertEquals<unknown>([...merged.values()], executed);
});

Deno.test("Responses contain calls that the provider runs as items, streamed and whole", async () => {
  const check = ({ output }: OpenAI.Responses.Response) => {
    const items = output.filter(({ type }) => type !== "message");
    assertEquals<unknown>(items, [
      { id: "s1", type: "web_search_call", status: "completed", action: { type: "search", queries: ["weather"] } },
      {
        id: "r1",
        type: "mcp_call",
        status: "failed",
        server_label: "dice",
        name: "roll",
        arguments: '{"sides":6}',
        output: null,
        error: '{"code":"down"}',
      },
      {
        id: "c1",
        type: "code_interpreter_call",
        status: "completed",
        code: '{"command":"ls"}',
        container_id: "",
        outputs: [{ type: "logs", logs: "a.txt" }],
      },
      { id: "f1", type: "file_search_call", status: "in_progress", queries: ["q"], results: null },
    ]);
  };
  check(await openaiOf(served()).responses.create({ input: "Hi" }));
  const stream = openaiOf(served()).responses.stream({ input: "Hi" });
  const begun: string[] = [];
  const done: string[] = [];
  stream.on("response.output_item.added", ({ item }) => void begun.push(String(item.id)));
  stream.on("response.output_item.done", ({ item }) => void done.push(String(item.id)));
  check(await stream.finalResponse());
  const isCall = (id: string) => /^[a-z]1$/.test(id);
  assertEquals([begun.filter(isCall), done.filter(isCall)], [["s1", "r1", "c1", "f1"], ["s1", "r1", "c1"]]);
});

Deno.test("the native client has calls that the provider runs in its state, and may send them back in a history, where they lose the provider's own data", async () => {
  const app = served();
  const { messages } = await client("", { fetch: app.request }).run({ prompt: "Hi" }).result();
  assertEquals<unknown>(messages.at(-1)?.parts, [
    { type: "text", id: 0, text: "Let me see. " },
    ...parts.map((part, index) => ({ ...part, id: index + 1 })),
    { type: "text", id: 8, text: "Done." },
  ]);

  const model = scripted("Again.");
  const prompt = { role: "user", parts: [{ type: "text", text: "Hi" }] } as const;
  const answer = { role: "assistant", parts } as const;
  const response = await serve(agent({ model })).request("/runs", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ messages: [prompt, answer, prompt] }),
  });
  await response.text();
  const kept = JSON.parse(JSON.stringify(parts.map((part) => ({ ...part, meta: undefined }))));
  assertEquals<unknown>(model.requests[0]?.messages, [prompt, { ...answer, parts: kept }, prompt]);
});

Deno.test("clients of chat completions may send executed tools and images back in a history", async () => {
  const image = { type: "media", mediaType: "image/png", data: "aaaa" } as const;
  const first = [[{ type: "part", part: image } as const], ...reads] as const;
  const model = scripted({ reads: first }, "Again.");
  const openai = openaiOf(serve(agent({ model }), { wires: [chatCompletions()] }));
  const prompt = { role: "user" as const, content: "Hi" };
  const { choices } = await openai.chat.completions.create({ model: "any", messages: [prompt] });
  await openai.chat.completions.create({ model: "any", messages: [prompt, choices[0]!.message, prompt] });
  const sent = parts.map((part) => ({
    ...JSON.parse(JSON.stringify({ ...part, meta: undefined, server: undefined })),
    ...(part.type === "provider_result" && { status: "ok" }), // the format has no other
  }));
  assertEquals<unknown>(model.requests[1]?.messages[1], {
    role: "assistant",
    parts: [...sent, { type: "text", text: "Let me see. Done." }, image],
  });
});
