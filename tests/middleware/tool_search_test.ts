import { agent, memory, tool } from "@jizai/jizai";
import { toolSearch, type ToolSearchOptions } from "@jizai/jizai/middleware/tool_search";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import * as z from "zod";
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
