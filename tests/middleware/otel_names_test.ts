/**
 * The names of attributes and metrics: what otel() records is what the tables of its page say.
 */
import { agent, deny, type Middleware, type Model, ModelError, refused, tool } from "@jizai/jizai";
import { notes } from "@jizai/jizai/middleware/notes";
import { otel } from "@jizai/jizai/middleware/otel";
import { plan } from "@jizai/jizai/middleware/plan";
import { retry } from "@jizai/jizai/middleware/retry";
import { skills } from "@jizai/jizai/middleware/skills";
import { memoryFiles } from "@jizai/jizai/middleware/workspace";
import { openai } from "@jizai/jizai/model/openai";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";
import { trace } from "@jizai/jizai/trace";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { type Recorded, recorder } from "../support/recorder.ts";

const page = await Deno.readTextFile(new URL("../../examples/guides/opentelemetry.md", import.meta.url));

/** The rows of the table under a heading of the page, without its head. */
function rowsOf(heading: string): readonly (readonly string[])[] {
  const [, section = ""] = page.split(`\n## ${heading}\n`);
  const lines = section.split("\n## ")[0]?.split("\n").filter((line) => line.startsWith("|")) ?? [];
  return lines.slice(2).map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()));
}

/** The names in backticks. */
function names(text: string): readonly string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
}

/** The attributes of the page, by the first word of the span. */
function attributesOfPage(): Readonly<Record<string, readonly string[]>> {
  const bySpan: Record<string, string[]> = {};
  let span = "";
  for (const [cell = "", attribute = ""] of rowsOf("Spans")) {
    if (cell !== "") span = names(cell)[0]?.split(" ")[0] ?? "";
    (bySpan[span] ??= []).push(...names(attribute));
  }
  return bySpan;
}

const city = z.object({ city: z.string() });
const weather = tool({ name: "weather", description: "Weather", input: city, execute: () => "Sun" });
const drop = tool({ name: "drop", description: "Drops", input: z.object({}), execute: () => "Gone" });
/** Hooks outside of otel(), which change requests and deny a call, and hooks inside of it, which refuse and fail. */
const meddling: Middleware = {
  name: "meddling",
  model: (_, next) =>
    next({
      request: { options: { maxTokens: 9, temperature: 0, stop: ["END"], seed: 7, effort: "low", output: {} } },
    }),
  approval: (ctx, next) => ctx.name === "drop" ? Promise.resolve(deny("No.")) : next(),
};
const failing: Middleware = {
  name: "failing",
  input: (ctx, next) => ctx.run.session === "refused" ? Promise.resolve(refused("No.")) : next(),
  stop: (ctx, next) => ctx.run.session === "failing" ? Promise.reject(new Error("broken")) : next(),
  execute: (ctx, next) =>
    ctx.run.session === "failing" && ctx.tool.name !== "weather" ? Promise.reject(new TypeError("broken")) : next(),
};

const travel = "---\nname: travel\ndescription: Plans trips.\n---\nRead steps.md.";

const usage = { input: 9, output: 4, cached: 3, cacheWrite: 2, reasoning: 1 };

/** A scripted model with a server, whose responses have ids. */
function served(...steps: readonly ScriptedAnswer[]): Model {
  const inner = scripted(...steps);
  return {
    id: "demo",
    server: { provider: "openai", address: "llm.example", port: 8443 },
    async *stream(request, options) {
      for await (const events of inner.stream(request, options)) {
        yield events.map((event) => event.type === "finish" ? { ...event, id: "resp_1", usage } : event);
      }
    },
  };
}

/** Runs with every kind of span, and their telemetry. */
async function everything(content = true) {
  const { api, spans, samples } = recorder();
  const busy = { error: new ModelError("busy", { recoverable: true, status: 429 }) };
  const calls = [
    ["weather", { city: "Kyoto" }],
    ["drop", {}],
    ["skill", { name: "travel" }],
    ["read_skill_file", { name: "travel", path: "steps.md" }],
    ["skill", { name: "made up" }],
    ["write_note", { text: "Prefers tea" }],
    ["write_note", { text: "Prefers coffee", id: 1 }],
    ["read_notes", {}],
    ["delete_note", { id: 1 }],
    ["update_plan", { steps: [{ task: "Pack", status: "active" }] }],
  ] as const;
  const observe = (...steps: readonly ScriptedAnswer[]) =>
    agent({
      name: "assistant",
      model: served(...steps),
      instructions: "Be brief.",
      tools: [weather, drop],
      use: [
        meddling,
        retry({ attempts: 2, delay: 0 }),
        otel(api, { content }),
        notes({ keyValue: memoryKeyValue() }),
        plan(),
        skills([{ files: memoryFiles({ "travel/SKILL.md": travel, "travel/steps.md": "Pack." }) }]),
        failing,
      ],
      limits: { turns: 2 },
      trace,
    });
  const owner = "ada";
  const onError = () => {};
  await observe(busy, { calls }, { calls: [["weather", { city: "Oslo" }]] })
    .run({ prompt: "Hi", session: "whole", owner, onError }).result;
  await observe({ calls }, "Done.").run({ prompt: "Hi", session: "failing", owner, onError }).result;
  await observe().run({ prompt: "Hi", session: "refused", owner }).result;
  return { spans, samples };
}

const memories = ["search_memory", "create_memory", "update_memory", "delete_memory"];

Deno.test("otel() records exactly the attributes that the table of its page names", async () => {
  const { spans } = await everything();
  const recorded: Record<string, Set<string>> = {};
  for (const { name, attributes } of spans) {
    const word = name.split(" ")[0] ?? "";
    const kind = memories.includes(word) ? "create_memory" : word;
    const known = recorded[kind] ??= new Set();
    for (const attribute of Object.keys(attributes)) known.add(attribute);
  }
  const sorted = (table: Readonly<Record<string, Iterable<string>>>) =>
    Object.fromEntries(Object.entries(table).map(([span, attributes]) => [span, [...attributes].toSorted()]));
  assertEquals(sorted(recorded), sorted(attributesOfPage()));
});

Deno.test("otel() records exactly the metrics and their attributes that the table of its page names", async () => {
  const { samples } = await everything();
  const recorded: Record<string, Set<string>> = {};
  for (const [name, attributes] of samples) {
    const known = recorded[name] ??= new Set();
    for (const attribute of Object.keys(attributes)) known.add(attribute);
  }
  const ofRequest = [
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.response.model",
    "server.address",
    "server.port",
  ];
  const table = Object.fromEntries(
    rowsOf("Metrics").map(([metric = "", , attributes = ""]) => [
      names(metric)[0] ?? "",
      [...names(attributes), ...attributes.includes("those of a request") ? ofRequest : []].toSorted(),
    ]),
  );
  assertEquals(
    Object.fromEntries(Object.entries(recorded).map(([name, attributes]) => [name, [...attributes].toSorted()])),
    table,
  );
});

/** The spans of one run inside of its own, each with its parent and what it is about. */
function about(spans: readonly Recorded[]): readonly unknown[] {
  const [run] = spans;
  const named = ["gen_ai.memory.record.id", "gen_ai.skill.name", "gen_ai.skill.resource.name"];
  return spans.filter(({ parent, name }) =>
    parent && (parent === run ? /^execute_tool .*skill/ : /memory|plan/).test(name)
  )
    .filter(({ parent }) => parent === run || parent?.parent === run)
    .map(({ name, kind, parent, attributes }) => [
      name,
      kind,
      parent?.name,
      named.flatMap((attribute) => attributes[attribute] ?? []),
    ]);
}

Deno.test("otel() nests the operation on a memory and the plan in their calls, and names a skill in its own", async () => {
  const run = "invoke_agent assistant";
  const inner = [
    ["create_memory", 2, "execute_tool write_note", []],
    ["update_memory", 2, "execute_tool write_note", ["1"]],
    ["search_memory", 2, "execute_tool read_notes", []],
    ["delete_memory", 2, "execute_tool delete_note", ["1"]],
    ["plan assistant", 0, "execute_tool update_plan", []],
  ];
  const sorted = (lines: readonly unknown[]) => lines.map((line) => JSON.stringify(line)).toSorted();
  assertEquals(
    sorted(about((await everything()).spans)),
    sorted([
      ["execute_tool skill travel", 0, run, ["travel"]],
      ["execute_tool read_skill_file travel steps.md", 0, run, ["travel", "steps.md"]],
      ["execute_tool skill", 0, run, []],
      ...inner,
    ]),
  );
  assertEquals(
    sorted(about((await everything(false)).spans)),
    sorted([
      ["execute_tool skill travel", 0, run, ["travel"]],
      ["execute_tool read_skill_file", 0, run, ["travel"]],
      ["execute_tool skill", 0, run, []],
      ...inner,
    ]),
  );
});

Deno.test("otel() reports a function `operation` that fails, and the call goes on", async () => {
  const { api, tree } = recorder();
  const errors: unknown[] = [];
  const odd = tool({
    name: "odd",
    description: "Odd",
    input: z.object({}),
    operation: () => {
      throw new Error("unknown");
    },
    execute: () => "Done.",
  });
  const model = scripted({ calls: [["odd", {}]] }, "Done.");
  const assistant = agent({ model, tools: [odd], use: [otel(api)] });
  const { status } = await assistant.run({ prompt: "Hi", onError: (error) => void errors.push(String(error)) }).result;
  assertEquals([status, errors], ["done", ["Error: unknown"]]);
  assertEquals(tree(), ["invoke_agent agent", "  chat scripted", "  execute_tool odd", "  chat scripted"]);
});

Deno.test("otel() names the provider of each request: by the host, by the adapter, or as the option says", async () => {
  const hosts: readonly (readonly [baseURL: string | undefined, provider: string])[] = [
    [undefined, "openai"],
    ["http://localhost:11434/v1", "openai"],
    ["https://openrouter.ai/api/v1", "openai"],
    ["https://mine.openai.azure.com/openai/v1", "azure.ai.openai"],
    ["https://bedrock-runtime.us-east-1.amazonaws.com/v1", "aws.bedrock"],
    ["https://abc.execute-api.us-east-1.amazonaws.com/v1", "openai"],
    ["https://us-central1-aiplatform.googleapis.com/v1", "gcp.vertex_ai"],
    ["https://generativelanguage.googleapis.com/v1beta/openai", "gcp.gemini"],
    ["https://api.deepseek.com", "deepseek"],
    ["https://api.groq.com/openai/v1", "groq"],
    ["https://api.mistral.ai/v1", "mistral_ai"],
    ["https://api.moonshot.ai/v1", "moonshot_ai"],
    ["https://api.perplexity.ai", "perplexity"],
    ["https://api.x.ai/v1", "x_ai"],
    ["https://not-x.ai/v1", "openai"],
  ];
  const frame = { id: "c1", choices: [{ index: 0, delta: { content: "Hi." }, finish_reason: "stop" }] };
  const fetch = () =>
    new Response(`data: ${JSON.stringify(frame)}\n\ndata: [DONE]\n\n`, {
      headers: { "content-type": "text/event-stream" },
    });
  const namesOf = async (model: Model, options = {}) => {
    const { api, spans, samples } = recorder();
    await agent({ model, use: [otel(api, options)] }).run("Hi").result;
    const chat = spans.find(({ name }) => name.startsWith("chat"))?.attributes ?? {};
    const counted = samples.filter(([, attributes]) => "gen_ai.operation.name" in attributes);
    return [
      chat["gen_ai.provider.name"],
      ...new Set(counted.map(([, attributes]) => attributes["gen_ai.provider.name"])),
      chat["server.address"],
      chat["server.port"],
    ];
  };
  for (const [baseURL, provider] of hosts) {
    const model = openai({ model: "m", apiKey: "k", fetch, ...(baseURL !== undefined && { baseURL }) });
    const { hostname, port, protocol } = new URL(baseURL ?? "https://api.openai.com");
    const expected = Number(port || (protocol === "http:" ? 80 : 443));
    assertEquals(await namesOf(model), [provider, provider, hostname, expected]);
  }
  const { id, stream } = scripted("Hi.");
  assertEquals(await namesOf({ id, stream }), ["unknown", "unknown", undefined, undefined]);
  const own = openai({ model: "m", apiKey: "k", fetch });
  assertEquals((await namesOf(own, { provider: "gateway" }))[0], "gateway");
  assertEquals((await namesOf(own, { provider: (model: string) => `of ${model}` }))[0], "of m");
});
