import {
  agent,
  type AnyTool,
  ask,
  memory,
  type Middleware,
  type Question,
  type RunEnd,
  serve,
  tool,
} from "@jizai/jizai";
import { client } from "@jizai/jizai/client";
import { scripted } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { assert, assertEquals } from "@std/assert";
import * as z from "zod";
import { post } from "../support/requests.ts";

const names = Array.from({ length: 200 }, (_, index) => `field_${index}`);
const input = z.object(Object.fromEntries(names.map((name) => [name, z.string().describe("A text").optional()])));

/** A tool with 200 fields that asks, and logs the inputs that it runs with. */
function wide(did: unknown[]): AnyTool {
  return tool({ name: "wide", description: "", input, ask: true, execute: (input) => void did.push(input) });
}

const calls = Array.from({ length: 500 }, (_, index) => ["wide", { field_0: `${index}` }] as const);
const limits = { calls: 1_000 };

/** Serves an agent whose store keeps at most a million characters of an owner. */
function served(made: ReturnType<typeof agent>) {
  const store = memory({ maxOwnerBytes: 2_000_000 });
  const app = serve(made, { store, owner: () => "me", onError: () => {} });
  const post = async (path: string, body: unknown) => {
    const response = await app.request(path, { method: "POST", body: JSON.stringify(body), headers });
    return await response.text();
  };
  return {
    post,
    /** Starts a run. Returns its session. */
    async start() {
      const text = await post("/runs", { prompt: "Go" });
      return /"session":"([^"]+)"/.exec(text)?.[1] ?? "";
    },
    async questions(session: string): Promise<readonly Question[]> {
      const { run } = await (await app.request(`/sessions/${session}`)).json();
      return run?.questions ?? [];
    },
    /** Returns how often the store has the schema of the tool. */
    async copies() {
      const [id = ""] = await store.list({ owner: "me" });
      return JSON.stringify(await store.load(id, { owner: "me" })).split('"field_199"').length - 1;
    },
  };
}

const headers = { "content-type": "application/json" };

/** Approves questions. */
function approving(questions: readonly Question[]) {
  return questions.map(({ callId }) => ({ callId, type: "approve" }));
}

Deno.test("the schema of a tool is stored once for a pause with 500 questions, and each question has it", async () => {
  const did: unknown[] = [];
  const made = agent({ model: scripted({ calls }, "Done."), tools: [wide(did)], limits });
  const { start, questions, copies, post } = served(made);
  const session = await start();
  const asked = await questions(session);
  assertEquals([asked.length, await copies()], [500, 1]);
  for (const { schema } of asked) assertEquals(schema, asked[0]?.schema);
  assert(JSON.stringify(asked[0]?.schema).includes('"field_199"'));

  await post(`/sessions/${session}/answers`, { answers: approving(asked.slice(0, 250)) });
  const rest = await questions(session);
  assertEquals([rest.length, await copies(), did.length], [250, 1, 250]);
  const end = await post(`/sessions/${session}/answers`, { answers: approving(rest) });
  assert(end.includes('"type":"run.finished","status":"done"'));
  assertEquals([did.length, await copies()], [500, 0]);
});

Deno.test("the schema of a tool is stored once for the questions of a subagent, and once for those of its parent", async () => {
  const did: unknown[] = [];
  const child = agent({ name: "child", model: scripted({ calls }, "Done."), tools: [wide(did)], limits });
  const model = scripted({ calls: [["child", { prompt: "Go" }]] }, "Done.");
  const { start, questions, copies, post } = served(agent({ model, tools: [asTool(child)], limits }));
  const session = await start();
  const asked = await questions(session);
  assertEquals([asked.length, await copies()], [500, 2]);
  await post(`/sessions/${session}/answers`, { answers: approving(asked) });
  assertEquals(did.length, 500);
});

Deno.test("schemas that hooks set are stored as they are, also if they look like references", async () => {
  const schemas = [{ $ref: "#/schemas/1" }, { type: "object" }, { $ref: "#/schemas/0" }, { type: "object" }, undefined];
  const asks: Middleware = {
    name: "asks",
    approval: (ctx) => {
      const schema = schemas[Number(ctx.call.id.slice(1))];
      return Promise.resolve(ask("Sure?", schema ? { schema } : {}));
    },
  };
  const plain = tool({ name: "plain", description: "", input: z.object({}), execute: () => "Done" });
  const calls = schemas.map((_, index) => ({ id: `c${index}`, name: "plain", input: {} }));
  const made = agent({ model: scripted({ calls }, "Done."), tools: [plain], use: [asks] });
  const { start, questions } = served(made);
  const asked = await questions(await start());
  assertEquals(asked.map(({ schema }) => schema?.oneOf ? undefined : schema), schemas);
});

Deno.test("the events of a pause with 500 questions contain the schema of a tool once for each run that asks", async () => {
  const direct = () => agent({ model: scripted({ calls }, "Done."), tools: [wide([])], limits });
  const nested = () => {
    const child = agent({ name: "child", model: scripted({ calls }, "Done."), tools: [wide([])], limits });
    const model = scripted({ calls: [["child", { prompt: "Go" }]] }, "Done.");
    return agent({ model, tools: [asTool(child)], limits });
  };
  for (const [make, copies] of [[direct, 1], [nested, 2]] as const) {
    const unlogged = await post(serve(make()), "/runs", { prompt: "Go" });
    assertEquals((await unlogged.text()).split('"field_199"').length - 1, copies);
    const app = serve(make(), { store: memory() });
    const sent = await (await post(app, "/runs", { prompt: "Go" })).text();
    assertEquals(sent.split('"field_199"').length - 1, copies);
    assertEquals(sent.split('"$ref":"#/schemas/0"').length - 1, 500 * copies);
    const [, run] = /"run":"([^"]+)"/.exec(sent) ?? [];
    const replayed = await (await app.request(`/runs/${run}`)).text();
    assertEquals(replayed.split('"field_199"').length - 1, copies);
  }
});

Deno.test("client(), onEnd and the AG-UI wire have the schema of each question", async () => {
  const two = [["wide", { field_0: "1" }], ["wide", { field_0: "2" }], ["other", {}]] as const;
  const other = tool({ name: "other", description: "", input: z.object({}), ask: true, execute: () => "" });
  const make = () => agent({ model: scripted({ calls: two }, "Done."), tools: [wide([]), other] });
  const ends: RunEnd[] = [];
  const options = { store: memory(), wires: [agUi()], onEnd: (end: RunEnd) => void ends.push(end) };
  const app = serve(make(), options);
  const fetchFrom = (url: string | URL | Request, init?: RequestInit) =>
    Promise.resolve(app.request(url as string, init));
  const run = client("http://localhost", { fetch: fetchFrom as typeof fetch }).run({ prompt: "Go" });
  const { questions } = await run.result();
  const widely = (schemas: readonly unknown[]) =>
    schemas.map((schema) => JSON.stringify(schema ?? "").includes('"field_199"'));
  assertEquals(widely(questions.map(({ schema }) => schema)), [true, true, false]);
  await app.settled();
  const [end] = ends;
  assert(end?.event.type === "run.paused");
  assertEquals(widely(end.event.questions.map(({ schema }) => schema)), [true, true, false]);

  const body = { threadId: "t", runId: "r", messages: [{ id: "m", role: "user", content: "Go" }] };
  const sent = await (await post(serve(make(), options), "/ag-ui", body)).text();
  const [, json = "{}"] = /data: (\{"type":"RUN_FINISHED".*)/.exec(sent) ?? [];
  const { outcome: { interrupts } } = JSON.parse(json);
  const schemas = interrupts.map(({ responseSchema }: { responseSchema?: object }) => responseSchema);
  assertEquals(widely(schemas), [true, true, false]);
});
