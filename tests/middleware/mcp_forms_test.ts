/**
 * Servers that answer in the odd forms of real ones: a tool or a content that cannot be read takes no other one with it.
 *
 * `deno task attack --seconds 3600 mcp_forms` tries more combinations.
 */
import { agent, type Middleware } from "@jizai/jizai";
import { mcp } from "@jizai/jizai/middleware/mcp";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import { served } from "../support/mcp_server.ts";
import { checkOddServer, oddServer, resultsOf } from "../support/odd_mcp_server.ts";
import { seeded, seeds, withSeed } from "../support/seeded.ts";

for (const sending of ["JSON", "events", "memory"] as const) {
  Deno.test(`mcp() keeps what can be read of lists and results in odd forms, sent as ${sending}`, async () => {
    for (const seed of seeds(100)) {
      await withSeed(seed, () => checkOddServer(oddServer(seeded(seed), sending), sending));
    }
  });
}

/** Runs an agent whose model calls a tool with an input. Returns the input that hooks see, the one that the server receives, and the result. */
async function calledWith(inputSchema: object, input: unknown) {
  const received: unknown[] = [];
  const seen: unknown[] = [];
  const answers: Readonly<Record<string, unknown>> = {
    initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } },
    "tools/list": { tools: [{ name: "t", inputSchema }] },
    "tools/call": { content: [] },
  };
  const http = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    if (request.method !== "POST") return new Response(null, { status: 405 });
    const { id, method, params } = await request.json();
    if (id === undefined) return new Response(null, { status: 202 });
    if (method === "tools/call") received.push(params.arguments);
    const result = answers[method];
    return Response.json({ jsonrpc: "2.0", id, ...result ? { result } : { error: { code: -32_601, message: "?" } } });
  });
  const watch: Middleware = {
    tool(ctx, next) {
      seen.push(ctx.input);
      return next();
    },
  };
  const servers = { s: { url: `http://127.0.0.1:${http.addr.port}` } };
  const { messages } = await agent({
    model: scripted({ calls: [["mcp__s__t", input]] }, "Done."),
    use: [mcp({ servers }), watch],
  }).run("Go").result;
  await http.shutdown();
  return { seen, received, results: resultsOf(messages) };
}

const filter = { type: "object", properties: { from: { type: "string" }, to: { type: ["string", "null"] } } };
const repairable = {
  type: "object",
  properties: {
    filter: { $ref: "#/$defs/Filter" },
    either: { anyOf: [{ $ref: "#/$defs/Filter" }, { type: "null" }] },
    only: { allOf: [{ $ref: "#/$defs/Filter" }] },
    tags: { type: "array", items: { type: "string" } },
    text: { type: "string" },
    any: {},
    page: { type: "integer" },
    kind: { enum: ["a", "b"] },
    next: { $ref: "#" },
    far: { $ref: "https://example.com/schema.json" },
  },
  required: ["page"],
  $defs: { Filter: filter },
};

/** Inputs as a model writes them, and as they are called. Those of which only one is given stay as they are. */
const inputs: readonly (readonly [written: object, repaired?: object])[] = [
  [{ page: 1, filter: '{"from":"a"}' }, { page: 1, filter: { from: "a" } }],
  [{ page: 1, either: '{"from":"a"}' }, { page: 1, either: { from: "a" } }],
  [{ page: 1, only: '{"from":"a"}' }, { page: 1, only: { from: "a" } }],
  [{ page: 1, tags: '["a"]' }, { page: 1, tags: ["a"] }],
  [{ page: 1, filter: '{"from":null,"to":null}' }, { page: 1, filter: { to: null } }],
  [{ page: 1, text: null, kind: null, tags: null, filter: null }, { page: 1 }],
  [{ page: 1, next: '{"page":2,"text":null}' }, { page: 1, next: { page: 2 } }],
  [{ page: 1, text: '{"from":"a"}', any: '["a"]', far: "[1]", other: "[1]" }],
  [{ page: 1, any: null, either: null, far: null, other: null }],
  [{ page: null }], // the server says why it refuses it
  [{ page: 1, tags: '{"from":"a"}' }],
  [{ page: 1, tags: "[a]" }],
  [{ page: "1" }],
];

for (const [written, repaired = written] of inputs) {
  Deno.test(`mcp() calls a tool with ${JSON.stringify(repaired)} for the input ${JSON.stringify(written)}`, async () => {
    const { seen, received } = await calledWith(repairable, written);
    assertEquals([seen, received], [[repaired], [repaired]]);
  });
}

Deno.test("mcp() repairs an input whose schema has properties and choices of what is required", async () => {
  const choices = [{ required: ["a"] }, { required: ["b"] }];
  const schema = { type: "object", properties: { a: { type: "array" }, b: { type: "array" } }, anyOf: choices };
  const { received } = await calledWith(schema, { a: "[1]", b: null });
  assertEquals(received, [{ a: [1] }]);
});

Deno.test("mcp() calls a tool with an input that nests deeper than it is repaired", async () => {
  const schema = { type: "object", properties: { next: { $ref: "#" }, city: { type: "string" } } };
  let input: object = { city: null };
  for (let at = 0; at < 1_000; at++) input = { next: input };
  const { received } = await calledWith(schema, input);
  assertEquals(received, [input]);
});

Deno.test("mcp() reads a schema of an input whose choices contain each other", async () => {
  const loop = { anyOf: Array.from({ length: 50 }, () => ({ $ref: "#/$defs/Loop" })) };
  const schema = { type: "object", properties: { a: { $ref: "#/$defs/Loop" } }, $defs: { Loop: loop } };
  const { received } = await calledWith(schema, { a: '{"a":null}' });
  assertEquals(received, [{ a: '{"a":null}' }]);
});

/** Runs an agent with a server that lists `tools`. Returns its status, the names of its tools and what was reported. */
async function listed(tools: readonly object[], wanted?: readonly string[]) {
  const server = served((server) => {
    server.registerTool("t", { description: "" }, () => ({ content: [] }));
    server.server.setRequestHandler("tools/list", () => ({ tools: tools as never }));
  });
  await using _ = server;
  const model = scripted("Done.");
  const reported: string[] = [];
  const servers = { s: { url: server.url, ...wanted && { tools: wanted } } };
  const { status } = await agent({ model, use: [mcp({ servers })] }).run({
    prompt: "Go",
    onError: (error) => void reported.push(String(error)),
  }).result;
  return { status, reported, tools: model.requests[0]?.tools.map(({ name, description }) => [name, description]) };
}

const good = { name: "good", description: "Good", inputSchema: { type: "object" } };
const bad = { name: "bad", inputSchema: {} };

Deno.test("mcp() reports a tool that cannot be used if its options name it", async () => {
  const report = 'Error: Cannot add tool "bad" of MCP server "s": `inputSchema.type` is missing; expected "object"';
  const tools = [["mcp__s__good", "Good"]];
  assertEquals(await listed([bad, good]), { status: "done", reported: [report], tools });
  assertEquals(await listed([bad, good], ["good"]), { status: "done", reported: [], tools });
  assertEquals(await listed([bad, good], ["good", "bad"]), { status: "done", reported: [report], tools });
});

Deno.test("mcp() reports a tool that is listed twice in two forms, and uses the last one", async () => {
  assertEquals(await listed([good, { ...good, description: "Better" }, { ...good, description: "Better" }]), {
    status: "done",
    reported: ['Error: Cannot add tool "good" of MCP server "s" twice: the last one is used'],
    tools: [["mcp__s__good", "Better"]],
  });
});

Deno.test("mcp() reports a tool that the client of the protocol leaves out", async () => {
  using _ = stub(console, "warn"); // the client warns too
  const header = { type: "object", properties: { a: { type: "object", "x-mcp-header": "A" } } };
  assertEquals(await listed([{ name: "bad", inputSchema: header }, good]), {
    status: "done",
    reported: ['Error: Cannot add tool "bad" of MCP server "s": its `x-mcp-header` is not valid'],
    tools: [["mcp__s__good", "Good"]],
  });
});

Deno.test("mcp() reports a tool whose schema nests too deep", async () => {
  let deep: object = { type: "string" };
  for (let at = 0; at < 200; at++) deep = { type: "array", items: deep };
  const { tools, reported } = await listed([{ ...bad, inputSchema: { type: "object", properties: { deep } } }, good]);
  assertEquals([tools, reported.length], [[["mcp__s__good", "Good"]], 1]);
});

Deno.test("mcp() continues without a server whose list of tools is no list", async () => {
  const { status, reported, tools } = await listed({ good } as never);
  assertEquals([status, reported, tools], [
    "done",
    ['Error: Cannot use MCP server "s": it could not be connected'],
    [],
  ]);
});
