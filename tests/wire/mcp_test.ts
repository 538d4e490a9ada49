import { agent, failed, memory, type Middleware, refused, serve, tool } from "@jizai/jizai";
import { rateLimit } from "@jizai/jizai/middleware/rate_limit";
import { redact } from "@jizai/jizai/middleware/redact";
import { toolSearch } from "@jizai/jizai/middleware/tool_search";
import { scripted } from "@jizai/jizai/model/scripted";
import { mcpWire } from "@jizai/jizai/wire/mcp";
import { assertEquals, assertThrows } from "@std/assert";
import * as z from "zod";
import { ask, call, type JsonObject, messagesOf, requestOf } from "../support/mcp_calls.ts";
import { post } from "../support/requests.ts";

const server = { _meta: { "io.modelcontextprotocol/serverInfo": { name: "agent", version: "1" } } };

/** A tool that adds two numbers. */
const add = tool({
  name: "add",
  description: "Adds",
  input: z.object({ a: z.number(), b: z.number() }),
  readOnly: true,
  execute: ({ a, b }) => a + b,
});

/** Returns the texts of a result. */
function textsOf({ content }: JsonObject): readonly unknown[] {
  return Array.isArray(content) ? content.map((each) => each.text) : [];
}

// The protocol.

Deno.test("mcpWire() tells clients of 2026 what it is, and lists the agent and the tools that are named", async () => {
  const app = serve(agent({ model: scripted(), description: "Helps", tools: [add] }), {
    wires: [mcpWire({ tools: ["add"] })],
  });
  const kept = { ttlMs: 300_000, cacheScope: "public" };
  assertEquals(await ask(app, "server/discover"), [200, {
    jsonrpc: "2.0",
    id: 7,
    result: {
      resultType: "complete",
      supportedVersions: ["2026-07-28"],
      capabilities: { tools: {} },
      ...kept,
      ...server,
    },
  }]);
  const [, { result }] = await ask(app, "tools/list") as [number, JsonObject];
  const { tools, ...rest }: JsonObject = Object(result);
  assertEquals(rest, { resultType: "complete", ...kept, ...server });
  assertEquals(tools, [
    {
      name: "agent",
      description: "Helps",
      inputSchema: {
        type: "object",
        properties: {
          prompt: { type: "string", description: "The task or question" },
          session: { type: "string", description: "The session of an earlier answer, to continue it" },
        },
        required: ["prompt"],
      },
    },
    {
      name: "add",
      description: "Adds",
      inputSchema: {
        type: "object",
        $schema: "https://json-schema.org/draft/2020-12/schema",
        properties: { a: { type: "number" }, b: { type: "number" } },
        required: ["a", "b"],
      },
      annotations: { readOnlyHint: true },
    },
  ]);
});

/** Sends a request without the members of 2026. */
async function askAsBefore(method: string, params: object = {}): Promise<unknown> {
  const app = serve(agent({ model: scripted("Hello!"), tools: [add] }), { wires: [mcpWire({ tools: ["add"] })] });
  const id = method.startsWith("notifications/") ? undefined : 1;
  const response = await post(app, "/mcp", { jsonrpc: "2.0", id, method, params });
  const [message] = await messagesOf(response);
  return [response.status, message?.result ?? message?.error];
}

Deno.test("mcpWire() answers clients of before 2026 without a session", async () => {
  const serverInfo = { name: "agent", version: "1" };
  const greeting = (protocolVersion: string) => [200, { protocolVersion, capabilities: { tools: {} }, serverInfo }];
  assertEquals(await askAsBefore("initialize", { protocolVersion: "2025-06-18" }), greeting("2025-06-18"));
  assertEquals(await askAsBefore("initialize", { protocolVersion: "2030-01-01" }), greeting("2025-11-25"));
  assertEquals(await askAsBefore("ping"), [200, {}]);
  assertEquals(await askAsBefore("notifications/initialized"), [202, undefined]);
  assertEquals(await askAsBefore("tools/call", { name: "add", arguments: { a: 1, b: 2 } }), [
    200,
    { content: [{ type: "text", text: "3" }] },
  ]);
  assertEquals(await askAsBefore("resources/list"), [200, {
    code: -32601,
    message: "Method not found: resources/list",
  }]);
});

const meta = (name: string, value: unknown) => ({ meta: { [`io.modelcontextprotocol/${name}`]: value } });
const missing = (name: string) => `Cannot read the request: expected io.modelcontextprotocol/${name} in its _meta`;
const unsupported = { supported: ["2026-07-28"], requested: "2099-01-01" };

/** Requests whose envelope is wrong, with the status and the error. */
const envelopes: Readonly<Record<string, readonly [options: Parameters<typeof requestOf>[2], ...unknown[]]>> = {
  "no version": [meta("protocolVersion", undefined), 400, { code: -32602, message: missing("protocolVersion") }],
  "no capabilities": [meta("clientCapabilities", 1), 400, { code: -32602, message: missing("clientCapabilities") }],
  "an unknown version": [
    { ...meta("protocolVersion", "2099-01-01"), headers: { "mcp-protocol-version": "2099-01-01" } },
    400,
    {
      code: -32022,
      message: "Unsupported protocol version: 2099-01-01",
      data: unsupported,
    },
  ],
  "another version in the header": [{ headers: { "mcp-protocol-version": "2025-11-25" } }, 400, {
    code: -32020,
    message: 'Header mismatch: mcp-protocol-version: it is "2025-11-25", and the body has "2026-07-28"',
  }],
  "another method in the header": [{ headers: { "mcp-method": "tools/list" } }, 400, {
    code: -32020,
    message: 'Header mismatch: mcp-method: it is "tools/list", and the body has "tools/call"',
  }],
  "another name in the header": [{ headers: { "mcp-name": "drop" } }, 400, {
    code: -32020,
    message: 'Header mismatch: mcp-name: it is "drop", and the body has "add"',
  }],
  "a page elsewhere": [{ headers: { origin: "https://evil.example" } }, 403, {
    code: -32600,
    message:
      "Cannot serve the origin https://evil.example: expected it in `origins` of mcpWire(), or a client that is no page",
  }],
};

for (const [what, [options, status, error]] of Object.entries(envelopes)) {
  Deno.test(`mcpWire() refuses ${what}, and runs nothing`, async () => {
    let runs = 0;
    const counted = tool({ name: "add", description: "Adds", input: add.input, execute: () => ++runs });
    const app = serve(agent({ model: scripted(), tools: [counted] }), { wires: [mcpWire({ tools: ["add"] })] });
    const answered = await ask(app, "tools/call", { name: "add", arguments: { a: 1, b: 2 } }, options);
    assertEquals(answered, [status as number, { jsonrpc: "2.0", id: 7, error }]);
    assertEquals(runs, 0);
  });
}

Deno.test("mcpWire() serves pages of this machine, those that are named, and names in base64", async () => {
  const app = serve(agent({ model: scripted(), tools: [add] }), {
    wires: [mcpWire({ tools: ["add"], origins: ["https://app.example"] })],
  });
  for (const origin of ["http://localhost:6274", "http://127.0.0.1", "http://[::1]:1", "https://app.example"]) {
    assertEquals((await ask(app, "tools/list", {}, { headers: { origin } }))[0], 200);
  }
  assertEquals((await ask(app, "tools/list", {}, { headers: { origin: "http://localhost.evil.example" } }))[0], 403);
  const headers = { "mcp-name": `=?base64?${btoa("add")}?=` };
  assertEquals(textsOf(await call(app, "add", { arguments: { a: 1, b: 2 } }, { headers })), ["3"]);
});

Deno.test("mcpWire() answers a body that is no request with an error of JSON-RPC", async () => {
  const app = serve(agent({ model: scripted() }), { wires: [mcpWire()], maxBody: 1_000 });
  const send = async (body: string) => {
    const headers = { "content-type": "application/json" };
    const response = await app.request("/mcp", { method: "POST", headers, body });
    const { id, error: { code } } = await response.json();
    return [response.status, id, code];
  };
  assertEquals(await send("{"), [400, undefined, -32700]);
  assertEquals(await send("[]"), [400, undefined, -32600]);
  assertEquals(await send('{"jsonrpc":"2.0","id":1}'), [400, 1, -32600]);
  assertEquals(await send('{"jsonrpc":"2.0","id":null,"method":"ping"}'), [400, undefined, -32600]);
  assertEquals(await send(`"${"x".repeat(2_000)}"`), [413, undefined, 413]);
  assertEquals((await app.request("/mcp")).status, 405);
});

Deno.test("mcpWire() refuses options that serve nothing, or what the agent does not have", () => {
  const serves = (options: Parameters<typeof mcpWire>[0]) => {
    const { message } = assertThrows(() => {
      serve(agent({ model: scripted(), tools: [add] }), { wires: [mcpWire(options)] });
    }, TypeError);
    return message;
  };
  assertEquals([
    serves({ tools: ["drop"] }),
    serves({ tools: ["add", "add"] }),
    serves({ agent: false }),
    serves({ tools: "add" as never }),
    serves({ tool: ["add"] } as never),
  ], [
    'Cannot serve mcpWire(): there is no tool "drop"; expected some of add',
    "Cannot serve mcpWire(): expected tools with different names, the agent among them; two have the same name",
    "Cannot serve mcpWire(): expected tools with different names, the agent among them; there is none",
    "Cannot create mcpWire(): expected a list of texts in `tools`",
    'Cannot create mcpWire(): there is no option "tool"; expected one of path, agent, tools, origins',
  ]);
});

// The agent as a tool.

Deno.test("mcpWire() answers a prompt, and continues its session", async () => {
  const model = scripted("Hello!", "Again.");
  const app = serve(agent({ model }), { wires: [mcpWire()] });
  const [hello, note] = textsOf(await call(app, "agent", { arguments: { prompt: "Hi" } }));
  assertEquals(hello, "Hello!");
  const [, session] = /session "([^"]+)"/.exec(String(note)) ?? [];
  assertEquals(textsOf(await call(app, "agent", { arguments: { prompt: "More", session } }))[0], "Again.");
  assertEquals(model.requests[1]?.messages.length, 3);
  assertEquals(await call(app, "agent", { arguments: { prompt: "Hi", session: "unknown" } }), {
    error: {
      code: -32602,
      message: 'Cannot run session "unknown": there is none',
      data: { code: "unknown" },
    },
  });
});

Deno.test("mcpWire() sends the structured output of an agent that has one", async () => {
  const output = z.object({ city: z.string() });
  const app = serve(agent({ name: "find a city", model: scripted('{"city":"Kyoto"}'), output }), {
    wires: [mcpWire()],
  });
  const [, { result: listed }] = await ask(app, "tools/list") as [number, JsonObject];
  const [{ name, outputSchema }] = Object(listed).tools;
  assertEquals([name, outputSchema.properties], ["find_a_city", { city: { type: "string" } }]);
  const { content, structuredContent } = await call(app, "find_a_city", { arguments: { prompt: "Where?" } });
  assertEquals(content, [{ type: "text", text: '{"city":"Kyoto"}' }]);
  assertEquals(structuredContent, { city: "Kyoto" });
});

Deno.test("mcpWire() sends the progress that a client wants, which grows", async () => {
  const count = tool({
    name: "count",
    description: "Counts",
    input: z.object({}),
    execute(_, { progress }) {
      progress({ progress: 50, total: 100, message: "half" });
      progress({ progress: 20 });
      progress({ rows: 3 });
      return "Counted.";
    },
  });
  const model = scripted({ calls: [["count", {}]] }, { text: ["I have ", "counted."] });
  const app = serve(agent({ model, tools: [count] }), { wires: [mcpWire({ tools: ["count"] })] });
  const progressOf = async (name: string, input: object) => {
    const [, ...messages] = await ask(app, "tools/call", { name, arguments: input }, { meta: { progressToken: "p" } });
    const sent = messages.slice(0, -1).map(({ method, params }) => [method, params]);
    assertEquals(new Set(sent.map(([method]) => method)), new Set(["notifications/progress"]));
    return sent.map(([, params]) => params);
  };
  const ofCount = (from: number) =>
    [
      { progressToken: "p", progress: 50, total: 100, message: "half" },
      { progressToken: "p", progress: 51, message: "" },
      { progressToken: "p", progress: 52, message: '{"rows":3}' },
    ].slice(from);
  assertEquals(await progressOf("count", {}), ofCount(0));
  assertEquals(await progressOf("agent", { prompt: "Count" }), [
    { progressToken: "p", progress: 1, message: "Calling count." },
    ...ofCount(0),
    { progressToken: "p", progress: 53, message: "I have " },
    { progressToken: "p", progress: 54, message: "counted." },
  ]);
  const [, ...unasked] = await ask(app, "tools/call", { name: "count", arguments: {} });
  assertEquals(unasked.length, 1);
});

Deno.test("mcpWire() sends the end of a run without an answer as an error, and no secret", async () => {
  const ends = async (model: ReturnType<typeof scripted>, use: readonly Middleware[] = []) => {
    const reported: unknown[] = [];
    const app = serve(agent({ model, use, limits: { turns: 1 } }), {
      wires: [mcpWire()],
      onError: (_, { id }) => reported.push(id),
    });
    const result = await call(app, "agent", { arguments: { prompt: "Go" } });
    return [result.isError, ...textsOf(result).map((text) => String(text).replace(String(reported[0]), "E1"))];
  };
  assertEquals(await ends(scripted({ error: new Error("key sk-secret") })), [true, "The run failed. Error id: E1"]);
  const why = "The answer is not complete: turns";
  assertEquals(await ends(scripted({ calls: [["none", {}]] })), [true, why]);
  assertEquals(await ends(scripted({ text: ["Half."], calls: [["none", {}]] })), [true, "Half.", why]);
  const refusing: Middleware = { name: "no", input: () => Promise.resolve(refused("Not here.")) };
  assertEquals(await ends(scripted("Hello!"), [refusing]), [true, "Not here."]);
});

Deno.test("mcpWire() stops the run of a client that ends the response", async () => {
  const aborted: string[] = [];
  const { promise: began, resolve: begin } = Promise.withResolvers<void>();
  const wait = tool({
    name: "wait",
    description: "Waits",
    input: z.object({}),
    execute: (_, { signal }) => {
      begin();
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  });
  const watch: Middleware = { name: "watch", abort: (ctx, next) => (aborted.push(ctx.reason), next()) };
  const app = serve(agent({ model: scripted(), tools: [wait], use: [watch] }), {
    wires: [mcpWire({ tools: ["wait"] })],
  });
  const response = await app.request("/mcp", requestOf("tools/call", { name: "wait", arguments: {} }));
  await began;
  await response.body?.cancel();
  await app.settled();
  assertEquals(aborted, ["client-gone"]);
});

// Calls without the model.

Deno.test("mcpWire() passes a call through every hook but the model's", async () => {
  const passed: string[] = [];
  const model = scripted();
  const points = ["session", "input", "prompt", "turn", "model", "tool", "approval", "execute", "stop"] as const;
  const watch = Object.fromEntries(points.map((point) => [point, (_: object, next: () => Promise<unknown>) => {
    passed.push(point);
    return next();
  }]));
  const app = serve(agent({ model, tools: [add], use: [{ name: "watch", ...watch } as Middleware] }), {
    wires: [mcpWire({ tools: ["add"], agent: false })],
  });
  assertEquals(textsOf(await call(app, "add", { arguments: { a: 1, b: 2 } })), ["3"]);
  assertEquals(
    passed,
    ["input", "session", "prompt", "turn", "tool", "approval", "execute"].toSorted((a, b) =>
      passed.indexOf(a) - passed.indexOf(b)
    ),
  );
  assertEquals(model.requests.length, 0);
});

Deno.test("mcpWire() sends what guards, schemas and tools refuse as the error of the call", async () => {
  const fails = tool({
    name: "fails",
    description: "Fails",
    input: z.object({}),
    execute: () => failed("It is broken."),
  });
  const throws = tool({
    name: "throws",
    description: "Throws",
    input: z.object({}),
    execute: () => {
      throw new Error("password hunter2");
    },
  });
  const guard: Middleware = {
    name: "guard",
    approval: (ctx, next) =>
      Object(ctx.input).a === 13 ? Promise.resolve({ type: "deny", reason: "Unlucky." }) : next(),
  };
  const app = serve(agent({ model: scripted(), tools: [add, fails, throws], use: [guard] }), {
    wires: [mcpWire({ tools: ["add", "fails", "throws"] })],
    onError() {},
  });
  const errorOf = async (name: string, input?: object) => {
    const result = await call(app, name, input && { arguments: input });
    return [result.isError, ...textsOf(result)];
  };
  assertEquals(await errorOf("add", { a: 13, b: 2 }), [true, "Unlucky."]);
  assertEquals(await errorOf("fails"), [true, "It is broken."]);
  const [isError, text] = await errorOf("throws");
  assertEquals([isError, /hunter2/.test(String(text))], [true, false]);
  const [isWrong, why] = await errorOf("add", { a: "one" });
  assertEquals([isWrong, /expected number/.test(String(why))], [true, true]);
});

Deno.test("mcpWire() calls only the tools that are named", async () => {
  let ran = 0;
  const hidden = tool({ name: "hidden", description: "Hidden", input: z.object({}), execute: () => ++ran });
  const app = serve(agent({ model: scripted(), tools: [add, hidden] }), {
    wires: [mcpWire({ tools: ["add"], agent: false })],
  });
  for (const name of ["hidden", "agent", "toString"]) {
    assertEquals(await call(app, name, { arguments: {} }), {
      error: { code: -32602, message: `Unknown tool: "${name}"` },
    });
  }
  assertEquals(ran, 0);
});

Deno.test("mcpWire() calls tools that toolSearch() hides from the model", async () => {
  const app = serve(agent({ model: scripted(), tools: [add], use: [toolSearch()] }), {
    wires: [mcpWire({ tools: ["add"] })],
  });
  assertEquals(textsOf(await call(app, "add", { arguments: { a: 1, b: 2 } })), ["3"]);
});

Deno.test("mcpWire() counts calls in the limits of prompts, and masks what clients receive", async () => {
  const secret = tool({ name: "secret", description: "Tells", input: z.object({}), execute: () => "It is hunter2." });
  const use = [redact({ secrets: ["hunter2"] }), rateLimit({ limit: 2, window: 60_000, per: () => "all" })];
  const app = serve(agent({ model: scripted(), tools: [secret], use }), { wires: [mcpWire({ tools: ["secret"] })] });
  assertEquals(textsOf(await call(app, "secret")), ["It is [redacted]."]);
  assertEquals(textsOf(await call(app, "secret")), ["It is [redacted]."]);
  assertEquals((await call(app, "secret")).isError, true);
});

Deno.test("mcpWire() sends files and links as content of MCP", async () => {
  const file = tool({
    name: "file",
    description: "Returns files",
    input: z.object({}),
    execute: () => ({
      type: "result" as const,
      status: "ok" as const,
      parts: [
        { type: "media" as const, mediaType: "image/png", data: "AA==" },
        { type: "media" as const, mediaType: "audio/wav", data: "AA==" },
        { type: "media" as const, mediaType: "application/pdf", data: "AA==" },
        { type: "media" as const, mediaType: "image/png", url: "https://files.example/a.png" },
      ],
      artifacts: [{ uri: "https://files.example/b.csv", name: "b", mediaType: "text/csv" }],
    }),
  });
  const app = serve(agent({ model: scripted(), tools: [file] }), { wires: [mcpWire({ tools: ["file"] })] });
  assertEquals((await call(app, "file")).content, [
    { type: "image", data: "AA==", mimeType: "image/png" },
    { type: "audio", data: "AA==", mimeType: "audio/wav" },
    { type: "resource", resource: { uri: "file:///3", mimeType: "application/pdf", blob: "AA==" } },
    {
      type: "resource_link",
      uri: "https://files.example/a.png",
      name: "https://files.example/a.png",
      mimeType: "image/png",
    },
    { type: "resource_link", uri: "https://files.example/b.csv", name: "b", mimeType: "text/csv" },
  ]);
});

Deno.test("mcpWire() sends the files and sources of the last answer", async () => {
  const png = { type: "media", mediaType: "image/png", data: "AA==" as string } as const;
  const source = { type: "source", url: "https://docs.example/a", title: "A" } as const;
  const read = (part: typeof png | typeof source) => [{ type: "part", part }] as const;
  const called = [
    { type: "call.start", id: "call_1", name: "add" },
    { type: "call.end", id: "call_1", input: { a: 1, b: 2 } },
  ] as const;
  const model = scripted(
    { reads: [read({ ...png, data: "BB==" }), called, [{ type: "finish", reason: "calls" }]] },
    { reads: [[{ type: "text", text: "Look." }], read(png), read(source), [{ type: "finish", reason: "stop" }]] },
  );
  const app = serve(agent({ model, tools: [add] }), { wires: [mcpWire()], session: () => "s1" });
  assertEquals((await call(app, "agent", { arguments: { prompt: "Draw" } })).content, [
    { type: "text", text: "Look." },
    { type: "image", data: "AA==", mimeType: "image/png" },
    { type: "resource_link", uri: "https://docs.example/a", name: "A" },
  ]);
});

Deno.test("mcpWire() answers refusals of the server in JSON-RPC, with their status", async () => {
  const store = memory();
  const owned = serve(agent({ model: scripted() }), {
    store,
    wires: [mcpWire()],
    owner: (c) => c.req.header("x-user"),
  });
  const refusal = (code: number, name: string, message: string) => ({
    jsonrpc: "2.0",
    id: 7,
    error: { code, message, data: { code: name } },
  });
  assertEquals(await ask(owned, "tools/list"), [
    403,
    refusal(403, "unidentified", "Cannot serve the request: it has no owner"),
  ]);
  const { promise: ended, resolve: end } = Promise.withResolvers<string>();
  const wait = tool({ name: "wait", description: "Waits", input: z.object({}), execute: () => ended });
  const full = serve(agent({ model: scripted(), tools: [wait] }), {
    wires: [mcpWire({ tools: ["wait"] })],
    capacity: { runs: 1 },
  });
  const first = await full.request("/mcp", requestOf("tools/call", { name: "wait" }));
  const [status, { error }] = await ask(full, "tools/call", { name: "agent", arguments: { prompt: "Hi" } }) as [
    number,
    JsonObject,
  ];
  assertEquals([status, Object(error).code, Object(error).data.code], [503, -32603, "capacity"]);
  end("Done.");
  assertEquals((await messagesOf(first)).length, 1);
});
