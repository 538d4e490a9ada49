import { agent, type AnyTool, ask, memory, type Middleware, type Question, serve, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import { assert, assertEquals } from "@std/assert";
import * as z from "zod";

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
      const [id = ""] = await store.list();
      return JSON.stringify(await store.load(id)).split('"field_199"').length - 1;
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
