import { agent, memory, type Middleware, type Model, textOf, tool } from "@jizai/jizai";
import { fallback } from "@jizai/jizai/middleware/fallback";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { toolSearch, type ToolSearchOptions } from "@jizai/jizai/middleware/tool_search";
import { anthropic } from "@jizai/jizai/model/anthropic";
import { openaiResponses } from "@jizai/jizai/model/openai_responses";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import * as z from "zod";
import { message, responseStream } from "../support/providers/openai_responses.ts";
import { recordRequests, sse } from "../support/providers/sse.ts";
import { lines } from "../support/transcript_lines.ts";

const named = (name: string, description: string, input: z.ZodRawShape = {}) =>
  tool({ name, description, input: z.object(input), execute: () => `Did ${name}.` });

const tools = [
  named("get_weather", "Current weather of a city", { city: z.string().optional() }),
  named("sendEmail", "Sends a message to a person", { recipient: z.string().optional() }),
  named("list_orders", "Lists the orders of a customer"),
  named("refund_order", "Refunds one order of a customer"),
  named("help", "Helps"),
];

const search = (query: string) => ["search_tools", { query }] as const;

/** Runs an agent whose tools are searched. */
async function run(script: readonly ScriptedAnswer[], options: ToolSearchOptions = {}) {
  const model = scripted(...script);
  const store = memory();
  const assistant = agent({ model, tools, use: [toolSearch(options)] });
  const { messages, session } = await assistant.run({ prompt: "Hi", session: "s", store }).result;
  const results = lines(messages.filter(({ role }) => role === "tool"));
  const offered = () => model.requests.map(({ tools }) => tools.map(({ name }) => name));
  return { results, offered, again: () => assistant.run({ prompt: "And?", session, store }).result };
}

/** Returns the names of the tools that a query finds. */
async function found(query: string, options?: ToolSearchOptions): Promise<readonly string[]> {
  const { results: [first = ""] } = await run([{ calls: [search(query)] }, "Done."], options);
  return first.replace(/^ok /, "").split("\n").map((line) => line.split(":")[0] ?? "");
}

Deno.test("toolSearch() obeys the laws of middleware", async () => {
  await testMiddleware(() => toolSearch({ keep: ["echo", "careful", "fail", "ask"] }));
});

Deno.test("toolSearch() offers only the search and the kept tools, and then what a search has found", async () => {
  const { offered, results, again } = await run([
    { calls: [search("weather in Kyoto")] },
    { calls: [["get_weather", { city: "Kyoto" }]] },
    "Sunny.",
    "Still sunny.",
  ], { keep: ["help"] });
  await again();
  assertEquals(offered(), [
    ["help", "search_tools"],
    ...Array(3).fill(["get_weather", "help", "search_tools"]),
  ]);
  assertEquals(results, ["ok get_weather: Current weather of a city", "ok Did get_weather."]);
});

Deno.test("toolSearch() finds tools by words of names, descriptions and parameters, the best first", async () => {
  assertEquals(await found("weather"), ["get_weather"]);
  assertEquals(await found("EMAIL"), ["sendEmail"]);
  assertEquals(await found("recipient"), ["sendEmail"]);
  assertEquals(await found("refund an order"), ["refund_order"]);
  assertEquals(await found("orders of a customer"), ["list_orders", "refund_order", "get_weather", "sendEmail"]);
  assertEquals(await found("a", { limit: 2 }), ["get_weather", "sendEmail"]);
  assertEquals(await found("list_orders"), ["list_orders"]);
  assertEquals(await found("teleport"), ["No tool found. Try other words."]);
  assertEquals(await found("help", { keep: ["help"] }), ["No tool found. Try other words."]);
});

Deno.test("toolSearch() fails a call of a tool that is not active", async () => {
  const { results } = await run([{ calls: [["refund_order", {}], ["unknown", {}]] }, "Done."]);
  assertEquals(results[0], `error The tool "refund_order" is not active. Find it with search_tools first.`);
  assertEquals(results[1]?.startsWith("error"), true);
});

Deno.test("toolSearch() deactivates the tool that was activated first", async () => {
  const { offered } = await run([
    { calls: [search("weather")] },
    { calls: [search("email")] },
    { calls: [search("weather")] },
    { calls: [search("refund")] },
    "Done.",
  ], { active: 2 });
  assertEquals(offered().map((names) => names.filter((name) => name !== "search_tools")), [
    [],
    ["get_weather"],
    ["get_weather", "sendEmail"],
    ["get_weather", "sendEmail"],
    ["get_weather", "refund_order"],
  ]);
});

Deno.test("toolSearch() activates the best tools that it finds, and names no others, if few may be active", async () => {
  const { offered, results } = await run([{ calls: [search("orders of a customer")] }, "Done."], { active: 2 });
  assertEquals(results, [
    "ok list_orders: Lists the orders of a customer\nrefund_order: Refunds one order of a customer",
  ]);
  assertEquals(offered()[1], ["list_orders", "refund_order", "search_tools"]);
});

Deno.test("toolSearch() refuses sizes that are not whole numbers of 1 or more", () => {
  assertThrows(() => toolSearch({ limit: 0 }), RangeError, "`limit` is 0");
  assertThrows(() => toolSearch({ active: 0.5 }), RangeError, "`active` is 0.5");
});

const blocksIn = (blocks: readonly object[], stop_reason: string) =>
  sse([
    ...blocks.flatMap((content_block, index) => [
      { type: "content_block_start", index, content_block },
      { type: "content_block_stop", index },
    ]),
    { type: "message_delta", delta: { stop_reason } },
    { type: "message_stop" },
  ]);
const searchCall = {
  type: "server_tool_use",
  id: "srvtoolu_1",
  name: "tool_search_tool_bm25",
  input: { query: "weather" },
};
const searchResult = (...names: readonly string[]) => ({
  type: "tool_search_tool_result",
  tool_use_id: searchCall.id,
  content: {
    type: "tool_search_tool_search_result",
    tool_references: names.map((tool_name) => ({ type: "tool_reference", tool_name })),
  },
});
const weatherCall = { type: "tool_use", id: "toolu_1", name: "get_weather", input: { city: "Kyoto" } };
const weatherResult = {
  type: "tool_result",
  tool_use_id: "toolu_1",
  content: [{ type: "text", text: "Did get_weather." }],
};
const sunny = { type: "text", text: "Sunny." };
const answered = blocksIn([sunny], "end_turn");
const bm25 = { type: "tool_search_tool_bm25_20251119", name: "tool_search_tool_bm25" };

/** A request's tools, each by its name, with a mark if it is deferred. */
const marksOf = ({ body }: { readonly body: { readonly tools: readonly Record<string, unknown>[] } }) =>
  body.tools.map(({ name, type, defer_loading }) => `${name ?? type}${defer_loading ? " deferred" : ""}`);

/** An agent of Anthropic, and the requests that it sends. */
function claude(streams: readonly string[], { name = "claude-sonnet-5-5", use = [] as readonly Middleware[] } = {}) {
  const { sent, fetch } = recordRequests(...streams);
  const model = anthropic({ model: name, fetch, cache: false });
  return { model, sent, assistant: agent({ model, tools, use: [...use, toolSearch({ keep: ["help"] })] }) };
}

const calling = blocksIn([searchCall, searchResult("get_weather"), weatherCall], "tool_use");
const deferredMarks = [
  "tool_search_tool_bm25",
  ...["get_weather", "sendEmail", "list_orders", "refund_order"].map((name) => `${name} deferred`),
  "help",
];

Deno.test("toolSearch() lets Anthropic search, and sends each time the same tools and back what was found", async () => {
  const { assistant, sent } = claude([calling, answered]);
  const { text, messages } = await assistant.run("Weather?").result;
  assertEquals(text, "Sunny.");
  assertEquals(sent.map(marksOf), [deferredMarks, deferredMarks]);
  assertEquals(sent[0]?.body.tools, sent[1]?.body.tools);
  assertEquals(sent[0]?.body.tools[0], bm25);
  assertEquals(sent[1]?.body.messages.slice(1), [
    { role: "assistant", content: [searchCall, searchResult("get_weather"), weatherCall] },
    { role: "user", content: [weatherResult] },
  ]);
  assertEquals(lines(messages).slice(2), ["ok Did get_weather.", "assistant Sunny."]);
});

Deno.test("the hooks guard a tool that the provider has found, also if another process answers", async () => {
  const denied = claude([calling, answered], { use: [permissions({ deny: ["get_weather"] })] });
  await denied.assistant.run("Weather?").result;
  assertEquals(denied.sent[1]?.body.messages.at(-1).content[0].is_error, true);

  const store = memory();
  const asks = { use: [permissions({ ask: ["get_weather"] })] };
  const { session, status } = await claude([calling], asks).assistant.run({ prompt: "Weather?", store }).result;
  const answers = [{ callId: "toolu_1", type: "approve" as const }];
  const again = claude([answered], asks);
  const { messages } = await again.assistant.resume({ session, store, answers }).result;
  assertEquals([status, again.sent[0]?.body.messages.at(-1).content], ["paused", [weatherResult]]);
  assertEquals(lines(messages).at(-1), "assistant Sunny.");
});

Deno.test("a search of Anthropic refers only to tools that the request still defers", async () => {
  const store = memory();
  const first = blocksIn([searchCall, searchResult("get_weather", "list_orders", bm25.name), weatherCall], "tool_use");
  await claude([first, answered]).assistant.run({ prompt: "Weather?", session: "s", store }).result;
  async function sentBy(use: readonly Middleware[]) {
    const { sent, fetch } = recordRequests(answered);
    const left = tools.filter((tool) => tool.name !== "list_orders");
    await agent({ model: anthropic({ model: "claude-sonnet-5-5", fetch, cache: false }), tools: left, use })
      .run({ prompt: "And?", session: "s", store }).result;
    return sent[0]?.body.messages[1].content.slice(0, 2);
  }
  assertEquals(await sentBy([toolSearch()]), [searchCall, searchResult("get_weather")]);
  assertEquals(await sentBy([]), [
    { type: "text", text: '[You called tool_search_tool_bm25 with {"query":"weather"}]' },
    {
      type: "text",
      text: `[tool_search_tool_bm25 returned ${
        JSON.stringify(searchResult("get_weather", "list_orders", bm25.name).content)
      }]`,
    },
  ]);
});

Deno.test("toolSearch() continues a response that Anthropic pauses within a search", async () => {
  const { assistant, sent } = claude([
    blocksIn([searchCall], "pause_turn"),
    blocksIn([searchResult("get_weather"), weatherCall], "tool_use"),
    answered,
  ]);
  assertEquals((await assistant.run("Weather?").result).text, "Sunny.");
  assertEquals(sent.map(({ body }) => body.messages.length), [1, 2, 3]);
  assertEquals(sent[2]?.body.messages[1].content, [searchCall, searchResult("get_weather"), weatherCall]);
});

Deno.test("toolSearch() lets OpenAI search over openaiResponses(), and sends the items back", async () => {
  const call = {
    type: "tool_search_call",
    id: "tsc_1",
    call_id: null,
    execution: "server",
    status: "completed",
    arguments: { paths: [] },
  };
  const output = {
    type: "tool_search_output",
    id: "tso_1",
    call_id: null,
    execution: "server",
    status: "completed",
    tools: [{ type: "function", name: "get_weather", parameters: {}, strict: false, defer_loading: true }],
  };
  const weather = {
    type: "function_call",
    id: "fc_1",
    call_id: "call_1",
    name: "get_weather",
    namespace: "get_weather",
    arguments: '{"city":"Kyoto"}',
    status: "completed",
  };
  const items = [call, output, weather].flatMap((item, output_index) => [
    { type: "response.output_item.added", output_index, item },
    { type: "response.output_item.done", output_index, item },
  ]);
  const { sent, fetch } = recordRequests(responseStream(items), responseStream(message(0, "Sunny.")));
  const model = openaiResponses({ model: "gpt-6.1-terra", fetch });
  const store = memory();
  const { text } = await agent({ model, tools, use: [toolSearch({ keep: ["help"] })] })
    .run({ prompt: "Weather?", session: "s", store }).result;
  assertEquals(text, "Sunny.");
  assertEquals(sent.map(marksOf), Array(2).fill(["tool_search", ...deferredMarks.slice(1)]));
  const { id: _, status: __, ...sentBack } = weather;
  const [, ...history] = sent[1]?.body.input ?? [];
  assertEquals(history, [
    call,
    output,
    sentBack,
    { type: "function_call_output", call_id: "call_1", output: "Did get_weather." },
  ]);
  await agent({ model, tools }).run({ prompt: "And?", session: "s", store }).result;
  assertEquals(sent[2]?.body.input.slice(1, 3), history.slice(2));
});

Deno.test("toolSearch() searches itself for models whose provider cannot, and with `provider: false`", async () => {
  const isSearchedBy = async (
    model: (fetch: ReturnType<typeof recordRequests>["fetch"]) => Model,
    options: ToolSearchOptions = {},
  ) => {
    const { sent, fetch } = recordRequests("");
    await agent({ model: model(fetch), tools, use: [toolSearch(options)] }).run("Hi").result;
    const names = sent.map(marksOf)[0] ?? [];
    return names.includes("search_tools") ? "itself" : names.length > 1 ? "the provider" : "none";
  };
  const searches: readonly (readonly [string, readonly string[]])[] = [
    ["the provider", ["claude-sonnet-4-5", "claude-haiku-4-5-20251001", "claude-opus-4-8", "claude-fable-5-2"]],
    ["the provider", [
      "claude-mythos-preview",
      "anthropic/claude-opus-4.5",
      "anthropic/claude-sonnet-5",
      "us.anthropic.claude-opus-5-v1:0",
    ]],
    ["itself", [
      "claude-opus-4-1",
      "claude-sonnet-4-0",
      "claude-sonnet-4-20250514",
      "claude-opus-4",
      "kimi-k3",
      "anthropic/claude-opus-4.1:free",
    ]],
    ["itself", ["claude-3-7-sonnet-latest", "claude-3-5-haiku@20241022", "claude-2.1", "claude-instant-1.2"]],
  ];
  for (const [by, names] of searches) {
    for (const model of names) {
      assertEquals([model, await isSearchedBy((fetch) => anthropic({ model, fetch }))], [model, by]);
    }
  }
  for (const model of ["gpt-5.4", "gpt-5.4-mini", "gpt-5.10", "gpt-6-astra", "gpt-6.1-terra", "gpt-10"]) {
    assertEquals([model, await isSearchedBy((fetch) => openaiResponses({ model, fetch }))], [model, "the provider"]);
  }
  for (const model of ["gpt-5.3-codex", "gpt-5.4-nano", "gpt-5", "gpt-4.1", "o4-mini", "grok-5", "my-deployment"]) {
    assertEquals([model, await isSearchedBy((fetch) => openaiResponses({ model, fetch }))], [model, "itself"]);
  }
  assertEquals(
    await isSearchedBy((fetch) => anthropic({ model: "claude-opus-5", fetch }), { provider: false }),
    "itself",
  );
});

Deno.test("a model that cannot defer receives deferred tools whole, and a forced tool is not deferred", async () => {
  const spare = scripted({ calls: [["get_weather", { city: "Kyoto" }]] }, "Sunny.", "Sunny again.");
  const { sent, fetch } = recordRequests("");
  const model = anthropic({ model: "claude-opus-5", fetch });
  const use = [toolSearch(), fallback([spare])];
  const { messages, text } = await agent({ model, tools, use }).run("Weather?").result;
  assertEquals(text, "Sunny.");
  assertEquals(messages.flatMap((message) => message.role === "tool" ? message.results.map(textOf) : []), [
    "Did get_weather.",
  ]);
  assertEquals(spare.requests[0]?.tools.length, tools.length);
  assertEquals(sent.length, 2);

  const forced: Middleware = {
    name: "forced",
    model: (ctx, next) => next({ request: { options: { ...ctx.request.options, toolChoice: { tool: "help" } } } }),
  };
  await agent({ model, tools, use: [forced, toolSearch()] }).run("Help").result;
  assertEquals(sent[2] && marksOf(sent[2]), deferredMarks);
});
