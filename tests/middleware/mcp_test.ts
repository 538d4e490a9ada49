import {
  agent,
  type AgentOptions,
  type CallResult,
  memory,
  type Message,
  type Middleware,
  type Model,
  type Schema,
  serve,
  tool,
  vars,
  when,
} from "@jizai/jizai";
import { mcp, type McpServer } from "@jizai/jizai/middleware/mcp";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { scripted } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { chatCompletions } from "@jizai/jizai/wire/openai";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { McpServer as Server } from "@modelcontextprotocol/server";
import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { stub } from "@std/testing/mock";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { barrier } from "../support/batch.ts";
import { served } from "../support/mcp_server.ts";
import { type App, post } from "../support/requests.ts";

const city = z.object({ city: z.string() });

/** A server that knows the weather. */
function weather(server: Server): void {
  server.registerTool("weather", { description: "Current weather", inputSchema: city }, ({ city }) => {
    return { content: [{ type: "text", text: `Sun in ${city}` }] };
  });
}

/** A tool `name` without input that returns `result`, or throws. */
function gives(name: string, result: () => unknown) {
  return (server: Server) => server.registerTool(name, { description: name }, async () => await result() as never);
}

/** Runs an agent that makes one batch of calls. Returns the results, the events and the requests. */
async function called(
  calls: readonly (readonly [string, unknown])[],
  servers: Readonly<Record<string, McpServer>>,
  options: Pick<AgentOptions<unknown, Schema>, "tools"> = {},
) {
  const model = scripted({ calls }, "Done.");
  const reported: unknown[] = [];
  const run = agent({ model, ...options, use: [mcp({ servers })] })
    .run({ prompt: "Go", onError: (error) => void reported.push(error) });
  const notices: string[] = [];
  for await (const event of run.events) if (event.type === "notice") notices.push(event.text);
  const { status, messages } = await run.result;
  const tools = model.requests[0]?.tools ?? [];
  return { status, results: resultsOf(messages), notices, reported: reported.map(String), tools };
}

function resultsOf(messages: readonly Message[]): readonly Omit<CallResult, "callId" | "name">[] {
  return messages.flatMap((message) => message.role === "tool" ? message.results : [])
    .map(({ callId: _, name: __, ...rest }) => rest);
}

const ok = (text: string) => ({ status: "ok", parts: [{ type: "text", text }] } as const);
const error = (text: string) => ({ status: "error", parts: [{ type: "text", text }] } as const);

Deno.test("mcp() obeys the laws of middleware", async () => {
  await testMiddleware(() => mcp({ servers: {} }));
});

for (const sessions of [false, true]) {
  const which = sessions ? "a server with sessions" : "a server without sessions";

  Deno.test(`mcp() adds the tools of ${which}, and closes the connection`, async () => {
    await using server = served(weather, { sessions });
    const { results, tools } = await called([["mcp__sky__weather", { city: "Kyoto" }]], { sky: { url: server.url } });
    assertEquals(results, [ok("Sun in Kyoto")]);
    assertEquals(tools.map(({ name, description }) => [name, description]), [["mcp__sky__weather", "Current weather"]]);
    assertEquals(tools[0]?.schema.required, ["city"]);
    assertEquals(server.open, 0);
    assertEquals(
      server.received.filter((method) => method !== "GET"),
      sessions
        ? ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call", "DELETE"]
        : ["server/discover", "tools/list", "tools/call"],
    );
  });

  Deno.test(`mcp() cancels a stopped call at ${which}`, async () => {
    const running = Promise.withResolvers<void>();
    const received = Promise.withResolvers<unknown>();
    await using server = served((server) => {
      server.registerTool("wait", { description: "Waits" }, ({ mcpReq: { signal } }) => {
        running.resolve();
        return new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            received.resolve("aborted");
            reject(signal.reason);
          });
        });
      });
    }, { sessions });
    const use = [mcp({ servers: { slow: { url: server.url } } })];
    const run = agent({ model: scripted({ calls: [["mcp__slow__wait", {}]] }), use }).run("Go");
    await running.promise;
    run.stop();
    assertEquals((await run.result).status, "aborted");
    assertEquals(await received.promise, "aborted");
    assertEquals(server.open, 0);
  });
}

Deno.test("mcp() closes the connection of a stopped run in which a hook never returns", async () => {
  await using server = served(weather, { sessions: true });
  const begun = Promise.withResolvers<void>();
  const hang: Middleware = {
    name: "hang",
    prompt() {
      begun.resolve();
      return new Promise(() => {});
    },
  };
  const use = [mcp({ servers: { sky: { url: server.url } } }), hang];
  const run = agent({ model: scripted(), use, limits: { grace: 1 } }).run("Go");
  await begun.promise;
  assertEquals(server.open, 1);
  run.stop();
  assertEquals((await run.result).status, "aborted");
  while (server.open > 0) await new Promise((resolve) => setTimeout(resolve)); // the run does not wait longer than `grace`
});

Deno.test("mcp() calls two servers in parallel", async () => {
  const both = barrier(2);
  const meet = async () => {
    await both();
    return { content: [{ type: "text", text: "met" }] };
  };
  await using one = served(gives("meet", meet));
  await using two = served(gives("meet", meet), { sessions: true });
  const { results } = await called([["mcp__one__meet", {}], ["mcp__two__meet", {}]], {
    one: { url: one.url },
    two: { url: two.url },
  });
  assertEquals(results, [ok("met"), ok("met")]);
});

Deno.test("mcp() adds only the tools that the options name", async () => {
  await using server = served((server) => {
    for (const name of ["read", "write", "drop"]) gives(name, () => ({ content: [] }))(server);
  });
  const { tools, results } = await called([["mcp__db__drop", {}]], {
    db: { url: server.url, tools: ["write", "read"] },
  });
  assertEquals(tools.map(({ name }) => name), ["mcp__db__read", "mcp__db__write"]);
  assertEquals(results, [error(`There is no tool "mcp__db__drop". The tools are: mcp__db__read, mcp__db__write`)]);
});

Deno.test("mcp() fails a run whose options name a tool that the server lacks", async () => {
  await using server = served((server) => {
    for (const name of ["read", "write"]) gives(name, () => ({ content: [] }))(server);
  });
  const use = [mcp({ servers: { db: { url: server.url, tools: ["read", "wirte"] } } })];
  const { status, error } = await agent({ model: scripted("Hi"), use }).run("Go").result;
  assertEquals(
    [status, String(error), server.open],
    ["failed", 'TypeError: Cannot use MCP server "db": it has no tool "wirte"; expected one of "read", "write"', 0],
  );
});

/** Lists the names that the model reads for tools of a server `s`, and those that their calls reach. */
async function named(names: readonly string[], ...mine: readonly string[]) {
  using _ = stub(console, "warn"); // the server warns about unusual names
  await using server = served((server) => {
    for (const name of names) gives(name, () => ({ content: [{ type: "text", text: name }] }))(server);
  });
  const own = mine.map((name) => tool({ name, description: "", input: z.object({}), execute: () => "my own" }));
  const { tools } = await called([], { s: { url: server.url } }, { tools: own });
  const calls = tools.map(({ name }) => [name, {}] as const);
  const { results, reported } = await called(calls, { s: { url: server.url } }, { tools: own });
  return { names: tools.map(({ name }) => name), results, reported };
}

Deno.test("mcp() keeps exact names, and adds a hash to other names, in every order of the servers", async () => {
  const long = "a".repeat(70);
  const expected: Readonly<Record<string, string>> = {
    "files_read": "mcp__s__files_read",
    ["b".repeat(56)]: `mcp__s__${"b".repeat(56)}`,
    "files.read": "mcp__s__files_read_feef3122",
    "files/read": "mcp__s__files_read_d2acbc6d",
    "ünïcode": "mcp__s___n_code_45f2402b",
    [long]: `mcp__s__${"a".repeat(47)}_5904740b`,
    [`${long}b`]: `mcp__s__${"a".repeat(47)}_8b03414b`,
  };
  for (const tools of [Object.keys(expected), Object.keys(expected).toReversed()]) {
    const { names, results } = await named(tools);
    assertEquals(names, tools.map((tool) => expected[tool]));
    assertEquals(results, tools.map(ok));
  }
});

Deno.test("mcp() leaves out a tool whose name is in use, and reports it", async () => {
  const mine = await named(["mine", "other"], "mcp__s__mine");
  assertEquals([mine.names, mine.results], [["mcp__s__mine", "mcp__s__other"], ["my own", "other"].map(ok)]);
  assertEquals(mine.reported, ['Error: Cannot add tool "mine" of MCP server "s": its name is in use']);
  for (const order of [["a.b", "a_b", "a_b_108bf50c"], ["a_b_108bf50c", "a.b", "a_b"]]) {
    const { names, results } = await named(order);
    const exact = order.filter((name) => name !== "a.b");
    assertEquals([names, results], [exact.map((name) => `mcp__s__${name}`), exact.map(ok)]);
  }
});

/** Requests a chat completion with a client's tool of each name. */
function complete(app: App, ...names: readonly string[]): Promise<Response> {
  const tools = names.map((name) => ({ type: "function", function: { name } }));
  return post(app, "/v1/chat/completions", { messages: [{ role: "user", content: "Hi" }], tools, stream: true });
}

Deno.test("a client's tool with a name like those of an MCP server is refused before the response begins", async () => {
  await using server = served(weather);
  const model = scripted("Done.");
  const sky = mcp({ servers: { sky: { url: server.url } } });
  for (const use of [[sky], [when(() => true, sky)]]) {
    const app = serve(agent({ model, use }), { wires: [chatCompletions()] });
    for (const name of ["mcp__sky__weather", "mcp__sky__of_no_server"]) {
      const response = await complete(app, "mine", name);
      const { error } = await response.json();
      assertEquals([response.status, error.code], [400, "invalid"]);
      assertMatch(
        error.message,
        new RegExp(
          '^Cannot add a tool to session "[^"]+": a middleware adds tools with the prefix "mcp__sky__"; ' +
            `expected a name without it, got "${name}"$`,
        ),
      );
    }
  }
  assertEquals([server.received, model.requests], [[], []]);
});

Deno.test("a client's tool may have a name that only resembles those of an MCP server", async () => {
  await using server = served(weather);
  const model = scripted({ calls: [["mcp__sky__weather", { city: "Kyoto" }]] }, "Done.");
  const app = serve(agent({ model, use: [mcp({ servers: { sky: { url: server.url } } })] }), {
    wires: [chatCompletions()],
  });
  const response = await complete(app, "mcp__sky", "mcp__skyline__weather");
  assertEquals([response.status, (await response.text()).includes("Done.")], [200, true]);
  assertEquals(server.received.filter((method) => method === "tools/call"), ["tools/call"]);
  assertEquals(model.requests[0]?.tools.map(({ name }) => name), [
    "mcp__sky",
    "mcp__skyline__weather",
    "mcp__sky__weather",
  ]);
});

Deno.test("mcp() keeps the name of a server's tool in a session that waits for a client's tool of that name", async () => {
  await using server = served(weather);
  const [store, reported] = [memory(), [] as string[]];
  const calls = { calls: [["mcp__sky__weather", { city: "Kyoto" }]] } as const;
  const serveWith = (model: Model, use: readonly Middleware[]) =>
    serve(agent({ model, use }), {
      store,
      wires: [chatCompletions()],
      onError: (error) => void reported.push(String(error)),
    });
  const question = await (await complete(serveWith(scripted(calls), []), "mcp__sky__weather")).text();
  const [, id] = question.match(/"id":"([^"]*)","type":"function"/) ?? [];
  const model = scripted("Done.");
  const later = serveWith(model, [mcp({ servers: { sky: { url: server.url } } })]);
  const messages = [{ role: "tool", tool_call_id: id, content: "wet" }];
  const response = await post(later, "/v1/chat/completions", { messages });
  assertEquals([response.status, (await response.json()).choices[0].message.content], [200, "Done."]);
  assertEquals(model.requests[0]?.tools.map(({ name, description }) => [name, description]), [
    ["mcp__sky__weather", "Current weather"],
  ]);
  assertEquals(reported, [
    'Error: Cannot add tool "mcp__sky__weather" of a client: the MCP server "sky" has a tool of its name',
  ]);
});

Deno.test("mcp() adds a tool once that its server lists twice", async () => {
  await using server = served((server) => {
    weather(server);
    const tool = { name: "weather", inputSchema: { type: "object" } } as const;
    server.server.setRequestHandler("tools/list", () => ({ tools: [tool, tool] }));
  });
  const { tools } = await called([["mcp__s__weather", { city: "Kyoto" }]], { s: { url: server.url } });
  assertEquals(tools.map(({ name, description }) => [name, description]), [["mcp__s__weather", "weather"]]);
});

Deno.test("mcp() converts media, files, links and structured content", async () => {
  const content = [
    { type: "text", text: "Here:" },
    { type: "image", data: "aW1n", mimeType: "image/png" },
    { type: "audio", data: "c25k", mimeType: "audio/wav" },
    { type: "resource", resource: { uri: "file:///a.txt", text: "in a" } },
    { type: "resource", resource: { uri: "file:///b", blob: "Yg==" } },
    { type: "resource_link", uri: "https://example.com/c.pdf", name: "c.pdf", mimeType: "application/pdf" },
  ];
  await using server = served((server) => {
    gives("show", () => ({ content }))(server);
    gives("empty", () => ({ content: [] }))(server);
    const sum = z.object({ sum: z.number() });
    server.registerTool("add", { description: "", outputSchema: sum }, () => {
      return { content: [], structuredContent: { sum: 3 } };
    });
  });
  const calls = [["mcp__s__show", {}], ["mcp__s__empty", {}], ["mcp__s__add", {}]] as const;
  const { results } = await called(calls, { s: { url: server.url } });
  assertEquals(results, [
    {
      status: "ok",
      parts: [
        { type: "text", text: "Here:" },
        { type: "media", mediaType: "image/png", data: "aW1n" },
        { type: "media", mediaType: "audio/wav", data: "c25k" },
        { type: "text", text: "in a" },
        { type: "media", mediaType: "application/octet-stream", data: "Yg==" },
        { type: "text", text: "c.pdf: https://example.com/c.pdf" },
      ],
      artifacts: [{ uri: "https://example.com/c.pdf", name: "c.pdf", mediaType: "application/pdf" }],
    },
    { status: "ok", parts: [] },
    ok(`{"sum":3}`),
  ]);
});

Deno.test("mcp() shows the structured content of a result unless its texts are the text form of it", async () => {
  const text = (text: string) => ({ type: "text", text });
  const results = {
    summary: { content: [text("2 cities")], structuredContent: { cities: ["Kyoto", "Oslo"] } },
    media: {
      content: [{ type: "image", data: "aW1n", mimeType: "image/png" }],
      structuredContent: { width: 2 },
    },
    json: { content: [text('{ "b": 1, "a": 2 }')], structuredContent: { a: 2, b: 1 } },
    beside: { content: [text("Found:"), text('{"a":2}')], structuredContent: { a: 2 } },
    wrapped: { content: [text("3")], structuredContent: { result: 3 } },
    words: { content: [text("Sun")], structuredContent: { result: "Sun" } },
    list: { content: [text('{"a":1}'), text("b")], structuredContent: { result: [{ a: 1 }, "b"] } },
    shorter: { content: [text("b")], structuredContent: { result: ["b", "c"] } },
  } as const;
  await using server = served((server) => {
    for (const [name, result] of Object.entries(results)) {
      const outputSchema = z.looseObject({});
      server.registerTool(name, { description: "", outputSchema }, () => structuredClone(result) as never); // of this form
    }
  });
  const calls = Object.keys(results).map((name) => [`mcp__s__${name}`, {}] as const);
  const { results: read } = await called(calls, { s: { url: server.url } });
  assertEquals(read.map(({ parts }) => parts.map((part) => part.type === "text" ? part.text : part.type)), [
    ["2 cities", '{"cities":["Kyoto","Oslo"]}'],
    ["media", '{"width":2}'],
    ['{ "b": 1, "a": 2 }'],
    ["Found:", '{"a":2}'],
    ["3"],
    ["Sun"],
    ['{"a":1}', "b"],
    ["b", '{"result":["b","c"]}'],
  ]);
});

Deno.test("mcp() returns a server's failures and refused inputs as errors", async () => {
  await using server = served((server) => {
    weather(server);
    gives("fail", () => ({ content: [{ type: "text", text: "Out of tea." }], isError: true }))(server);
    gives("throw", () => Promise.reject(new Error("Out of cups.")))(server);
  });
  const { results, reported } = await called([
    ["mcp__s__fail", {}],
    ["mcp__s__throw", {}],
    ["mcp__s__weather", ["Kyoto"]],
    ["mcp__s__weather", { city: 1 }],
  ], { s: { url: server.url } });
  assertEquals(results.slice(0, 3), [
    error("Out of tea."),
    error("Out of cups."),
    error("The input of mcp__s__weather is not valid: expected an object"),
  ]);
  assertEquals(results[3]?.status, "error");
  assertEquals(reported, []);
});

Deno.test("mcp() emits the progress of a call", async () => {
  await using server = served((server) => {
    server.registerTool("count", { description: "" }, async ({ mcpReq }) => {
      const { progressToken = 0 } = mcpReq._meta ?? {};
      await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress: 1, total: 2 } });
      return { content: [{ type: "text", text: "2" }] };
    });
  });
  const model = scripted({ calls: [["mcp__s__count", {}]] }, "Done.");
  const run = agent({ model, use: [mcp({ servers: { s: { url: server.url } } })] }).run("Go");
  const progress: unknown[] = [];
  for await (const event of run.events) if (event.type === "tool.progress") progress.push(event.data);
  assertEquals(progress, [{ progress: 1, total: 2 }]);
});

Deno.test("mcp() continues without a server that does not answer, and tries again in the next run", async () => {
  await using gone = served(weather);
  await using there = served(weather);
  let isBack = false;
  const wire = async (request: Request | URL | string, init?: RequestInit) => {
    if (!isBack) throw new TypeError("connection refused");
    return await fetch(request, init);
  };
  const transport = () => new StreamableHTTPClientTransport(new URL(gone.url), { fetch: wire });
  const model = scripted("One.", "Two.");
  const reported: string[] = [];
  const notices: string[] = [];
  const assistant = agent({ model, use: [mcp({ servers: { gone: { transport }, there: { url: there.url } } })] });
  async function run(): Promise<void> {
    const { events } = assistant.run({ prompt: "Go", onError: (error) => void reported.push(String(error)) });
    for await (const event of events) if (event.type === "notice") notices.push(event.text);
  }
  await run();
  isBack = true;
  await run();
  assertEquals(model.requests.map(({ tools }) => tools.map(({ name }) => name)), [
    ["mcp__there__weather"],
    ["mcp__gone__weather", "mcp__there__weather"],
  ]);
  assertEquals(notices, ["The tools of gone are not available now."]);
  assertEquals(reported, [`Error: Cannot use MCP server "gone": it could not be connected`]);
});

Deno.test("mcp() lists the tools of a server in each run", async () => {
  const names = ["one"];
  await using server = served((server) => {
    for (const name of names) gives(name, () => ({ content: [] }))(server);
  });
  const model = scripted("One.", "Two.");
  const assistant = agent({ model, use: [mcp({ servers: { s: { url: server.url } } })] });
  await assistant.run("Go").result;
  names.push("two");
  await assistant.run("Go").result;
  assertEquals(model.requests.map(({ tools }) => tools.map(({ name }) => name)), [
    ["mcp__s__one"],
    ["mcp__s__one", "mcp__s__two"],
  ]);
});

Deno.test("mcp() continues without a server that takes too long to connect", async () => {
  const over = Promise.withResolvers<Response>();
  await using silent = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => over.promise);
  const url = `http://127.0.0.1:${silent.addr.port}`;
  const { status, notices, tools } = await called([], { silent: { url, time: 30 } });
  assertEquals([status, notices, tools], ["done", ["The tools of silent are not available now."], []]);
  over.resolve(new Response());
});

Deno.test("mcp() stops waiting for a call that takes too long", async () => {
  using time = new FakeTime();
  const begun = Promise.withResolvers<void>();
  const stopped = Promise.withResolvers<void>();
  await using server = served((server) => {
    server.registerTool("wait", { description: "" }, ({ mcpReq: { signal } }) => {
      begun.resolve();
      signal.addEventListener("abort", () => stopped.resolve());
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    });
  });
  const calling = called([["mcp__s__wait", {}]], { s: { url: server.url, time: 500 } });
  await begun.promise;
  time.tick(500);
  const { results } = await calling;
  assertEquals(results, [{
    status: "timeout",
    parts: [{ type: "text", text: "mcp__s__wait did not finish in time." }],
  }]);
  await stopped.promise;
});

Deno.test("mcp() fails a call whose server is gone, and reports the error", async () => {
  await using server = served((server) => {
    weather(server);
    gives("die", () => new Promise(() => {}))(server);
  });
  const { url } = server;
  let dead = false;
  const wire = async (request: Request | URL | string, init?: RequestInit) => {
    const { method } = JSON.parse(String(init?.body ?? "{}"));
    if (method === "tools/call") dead = true;
    if (dead) throw new TypeError("connection refused at 10.0.0.7");
    return await fetch(request, init);
  };
  const transport = () => new StreamableHTTPClientTransport(new URL(url), { fetch: wire });
  const { results, reported } = await called([["mcp__s__weather", { city: "Kyoto" }]], { s: { transport } });
  assertEquals(results, [error("mcp__s__weather failed.")]);
  assertEquals(reported, ["TypeError: connection refused at 10.0.0.7"]);
});

Deno.test("guards decide about calls of MCP tools", async () => {
  await using server = served((server) => {
    weather(server);
    gives("publish", () => ({ content: [{ type: "text", text: "Published." }] }))(server);
  }, { sessions: true });
  const rules = permissions({ ask: ["mcp__s__publish"], deny: ["mcp__s__weather"] });
  const model = scripted(
    { calls: [["mcp__s__publish", { a: 1 }], ["mcp__s__weather", { city: "Kyoto" }]] },
    "Done.",
  );
  const assistant = agent({ model, use: [rules, mcp({ servers: { s: { url: server.url } } })] });
  const paused = await assistant.run({ prompt: "Go", session: "s1" }).result;
  assertEquals(paused.questions.map(({ tool, input }) => [tool, input]), [["mcp__s__publish", { a: 1 }]]);
  assertEquals([server.open, server.received.includes("tools/call")], [0, false]);
  const answers = [{ callId: "call_1", type: "approve" }] as const;
  const { messages } = await assistant.resume({ session: "s1", answers }).result;
  assertEquals(resultsOf(messages), [ok("Published."), {
    status: "denied",
    parts: [{ type: "text", text: "mcp__s__weather is not permitted here." }],
  }]);
  assertEquals(server.open, 0);
});

Deno.test("mcp() sends the headers of the run", async () => {
  await using server = served(weather);
  const use = [mcp<{ token: string }>({
    servers: { s: { url: server.url, headers: ({ vars }) => ({ authorization: `Bearer ${vars.token}` }) } },
  })];
  const model = scripted("One.");
  await agent({ vars: vars<{ token: string }>(), model, use }).run({ prompt: "Go", vars: { token: "t1" } }).result;
  assertEquals(server.headers.get("authorization"), "Bearer t1");
});

Deno.test("mcp() follows redirects within the server only, since another one would receive its headers", async () => {
  await using server = served(weather);
  await using front = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { pathname } = new URL(request.url);
    const location = { "/moved": "/mcp", "/far": server.url, "/loop": "/loop" }[pathname];
    if (location) return new Response(null, { status: 307, headers: { location } });
    const { method, headers, body } = request;
    return await fetch(server.url, { method, headers, body });
  });
  const at = (path: string) => ({
    s: { url: `http://127.0.0.1:${front.addr.port}${path}`, headers: { "x-key": "secret" } },
  });
  for (const path of ["/far", "/loop"]) {
    const { status, notices } = await called([], at(path));
    assertEquals([status, notices], ["done", ["The tools of s are not available now."]]);
  }
  assertEquals(server.received, []);
  const { results } = await called([["mcp__s__weather", { city: "Rome" }]], at("/moved"));
  assertEquals([results, server.headers.get("x-key")], [[ok("Sun in Rome")], "secret"]);
});

Deno.test("mcp() does not connect for a run that is already stopped", async () => {
  await using server = served(weather);
  const use = [mcp({ servers: { s: { url: server.url } } })];
  const { status } = await agent({ model: scripted(), use }).run({ prompt: "Go", signal: AbortSignal.abort() }).result;
  assertEquals([status, server.received], ["aborted", []]);
});

Deno.test("mcp() throws for invalid names, URLs, lists and times", () => {
  const url = "http://localhost/mcp";
  for (const name of ["", "a b", "a__b", "_a", "a".repeat(33)]) {
    assertThrows(() => mcp({ servers: { [name]: { url } } }), TypeError, "Cannot use MCP server");
  }
  for (const url of ["nowhere", "ftp://localhost/mcp"]) {
    assertThrows(() => mcp({ servers: { a: { url } } }), TypeError, "expected an http or https URL");
  }
  assertThrows(() => mcp({ servers: { a: { url, tools: [] } } }), TypeError, "`tools` is empty");
  for (const time of [0, -1, NaN, 2 ** 31]) assertThrows(() => mcp({ servers: { a: { url, time } } }), RangeError);
});

Deno.test("mcp() connects to the URL of a server whose transport is undefined", async () => {
  await using server = served(weather);
  const docs = { url: server.url, transport: undefined };
  const { results, reported } = await called([["mcp__s__weather", { city: "Kyoto" }]], { s: docs as never });
  assertEquals([results.length, reported], [1, []]);
});

Deno.test("mcp() copies readOnlyHint, which matters only if a middleware requests groups", async () => {
  const log: string[] = [];
  const note = (name: string) => () => {
    log.push(name);
    return { content: [] };
  };
  await using server = served((server) => {
    server.registerTool("look", { description: "Looks", annotations: { readOnlyHint: true } }, note("look"));
    server.registerTool("push", { description: "Pushes", annotations: { readOnlyHint: false } }, note("push"));
    server.registerTool("plain", { description: "Works" }, note("plain"));
  });
  const names = ["look", "look", "push", "plain"];
  const calls = names.map((name) => [`mcp__git__${name}`, {}] as const);
  const watch: Middleware = {
    tool(ctx, next) {
      log.push(`in ${ctx.name.slice(10)}`);
      return next();
    },
  };
  const run = async (...use: Middleware[]) => {
    const tools = mcp({ servers: { git: { url: server.url } } });
    await agent({ model: scripted({ calls }, "Done."), use: [tools, ...use, watch] }).run("Go").result;
    return log.splice(0);
  };
  assertEquals((await run()).slice(0, 4), names.map((name) => `in ${name}`));
  assertEquals(await run({ groups: ({ parallel }) => parallel ? "parallel" : "alone" }), [
    ...["in look", "in look", "look", "look"],
    ...["in push", "push", "in plain", "plain"],
  ]);
});

/** A way to answer without an end: the headers, the beginning and what follows it again and again. */
type Endless = readonly [type: string, begin: string, more: string, status?: number];

/** Serves a server with one tool, over plain JSON-RPC. The answer to the method `endless` never ends. Knows the answers that are still open. */
function serveEndless(endless: string, [type, begin, more, status = 200]: Endless) {
  const open = new Set<object>();
  const chunk = new TextEncoder().encode(more.repeat(Math.ceil(1_000 / Math.max(1, more.length))));
  const results: Readonly<Record<string, unknown>> = {
    initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } },
    "tools/list": { tools: [{ name: "big", inputSchema: { type: "object" } }] },
    "tools/call": { content: [{ type: "text", text: "small" }] },
  };

  function withoutEnd(): Response {
    const id = {};
    let pause = Promise.resolve(0);
    open.add(id);
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode(begin)),
      async pull(controller) {
        if (more === "") return await new Promise(() => {});
        pause = new Promise((resolve) => setTimeout(resolve, 0, 0)); // the others may work
        await pause;
        if (open.has(id)) controller.enqueue(chunk);
      },
      async cancel() {
        await pause;
        open.delete(id);
      },
    });
    return new Response(body, { status, headers: { "content-type": type } });
  }

  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    if (request.method === endless) return withoutEnd();
    if (request.method !== "POST") return new Response(null, { status: 405 });
    const { id, method } = await request.json();
    if (method === endless) return withoutEnd();
    if (id === undefined) return new Response(null, { status: 202 });
    if (!(method in results)) return Response.json({ jsonrpc: "2.0", id, error: { code: -32601, message: "unknown" } });
    return Response.json({ jsonrpc: "2.0", id, result: results[method] });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}/mcp`,
    open,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

const endlessAnswers: Readonly<Record<string, Endless>> = {
  "JSON": ["application/json", '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"', "x"],
  "an event": ["text/event-stream", 'data: {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"', "x"],
  "an event with an id": ["text/event-stream", 'id: 1\ndata: {"jsonrpc":"2.0"}\n\ndata: {"a":"', "x"],
  "events": [
    "text/event-stream",
    "",
    'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}\n\n',
  ],
  "comments": ["text/event-stream", "", ": still here\n\n"],
  "blank JSON": ["application/json", "", " "],
  "a failure": ["text/plain", "no", "!", 500],
};

for (const [kind, endless] of Object.entries(endlessAnswers)) {
  Deno.test(`mcp() ends a call whose answer is ${kind} without an end`, async () => {
    await using server = serveEndless("tools/call", endless);
    const { status, results, reported } = await called([["mcp__s__big", {}]], {
      s: { url: server.url, maxBytes: 100_000 },
    });
    const isFailure = kind === "a failure";
    assertEquals([status, results], ["done", [
      error(isFailure ? "mcp__s__big failed." : "The answer of the MCP server has more than 100000 bytes."),
    ]]);
    assertEquals(reported.map((each) => each.slice(0, 40)), [
      isFailure ? "SdkHttpError: Error POSTing to endpoint:" : "ToolError: The answer of the MCP server ",
    ]);
    while (server.open.size > 0) await new Promise((resolve) => setTimeout(resolve));
  });

  Deno.test(`mcp() continues without a server whose list of tools is ${kind} without an end`, async () => {
    for (const method of ["server/discover", "initialize", "tools/list"]) {
      await using server = serveEndless(method, endless);
      const { status, notices, tools } = await called([], { s: { url: server.url, maxBytes: 100_000 } });
      const isAnswered = method === "server/discover" && kind !== "a failure"; // a server of an earlier version does not know it
      assertEquals([status, notices.length, tools.length], ["done", isAnswered ? 0 : 1, isAnswered ? 1 : 0], method);
      while (server.open.size > 0) await new Promise((resolve) => setTimeout(resolve));
    }
  });
}

Deno.test("mcp() closes an answer that has neither an end nor bytes, before the run ends", async () => {
  for (
    const [type, begin] of [["application/json", "{"], ["text/event-stream", 'id: 1\ndata: {"jsonrpc":"2.0"}\n\n']]
  ) {
    await using server = serveEndless("tools/call", [type ?? "", begin ?? "", ""]);
    const closed: number[] = [];
    const watch: Middleware = {
      async stop(_, next) {
        while (server.open.size > 0) await new Promise((resolve) => setTimeout(resolve));
        closed.push(server.open.size);
        return await next();
      },
    };
    const model = scripted({ calls: [["mcp__s__big", {}]] }, "Done.");
    const use = [mcp({ servers: { s: { url: server.url, time: 100 } } }), watch];
    const { messages } = await agent({ model, use }).run("Go").result;
    assertEquals(resultsOf(messages).map(({ status }) => status), ["timeout"]);
    assertEquals(closed, [0]);
  }
});

Deno.test("mcp() connects in time although the answer to a notification never ends", async () => {
  await using server = serveEndless("notifications/initialized", ["text/plain", "x", "", 202]);
  const { status, notices, reported, tools } = await called([], { s: { url: server.url, time: 100 } });
  assertEquals([status, notices, reported, tools.length], ["done", [], [], 1]);
  while (server.open.size > 0) await new Promise((resolve) => setTimeout(resolve));
});

Deno.test("mcp() closes a stream of notifications without an end, and calls the tools as before", async () => {
  await using server = serveEndless("GET", ["text/event-stream", "retry: 0\n\n", ": still here\n\n"]);
  const whileOpen: number[] = [];
  const watch: Middleware = {
    async prompt(_, next) {
      while (server.open.size === 0) await new Promise((resolve) => setTimeout(resolve));
      whileOpen.push(server.open.size);
      while (server.open.size > 0) await new Promise((resolve) => setTimeout(resolve));
      return await next();
    },
  };
  const model = scripted({ calls: [["mcp__s__big", {}]] }, "Done.");
  const use = [mcp({ servers: { s: { url: server.url, maxBytes: 100_000 } } }), watch];
  const { messages } = await agent({ model, use }).run("Go").result;
  assertEquals([resultsOf(messages), whileOpen], [[ok("small")], [1]]);
});

/** Returns `fetch` with other responses for some requests. */
function wired(fetch: typeof globalThis.fetch, respond: (init: RequestInit) => Response | undefined): typeof fetch {
  return async (request, init = {}) => respond(init) ?? await fetch(request, init);
}

Deno.test("mcp() opens a stream of notifications again, and not for ever", async () => {
  let opened = 0;
  await using server = serveEndless("", ["", "", ""]);
  using _ = stub(
    globalThis,
    "fetch",
    wired(fetch, (init) => {
      if (init.method !== "GET") return undefined;
      opened++;
      return new Response("retry: 0\n\n", { headers: { "content-type": "text/event-stream" } });
    }),
  );
  const wait: Middleware = {
    async prompt(_, next) {
      for (let after = 0; after < 50; after += opened < 10 ? 0 : 1) await new Promise((resolve) => setTimeout(resolve));
      return await next();
    },
  };
  await agent({
    model: scripted("Done."),
    use: [mcp({ servers: { s: { url: server.url, maxBytes: 101_000 } } }), wait],
  })
    .run("Go").result;
  assertEquals(opened, 10);
});

Deno.test("mcp() continues without a server whose pages of tools are together too large", async () => {
  let pages = 0;
  await using server = served((server) => {
    weather(server);
    server.server.setRequestHandler("tools/list", () => {
      const tools = [{ name: `t${pages}`, description: "x".repeat(40_000), inputSchema: { type: "object" } } as const];
      return { tools, nextCursor: String(++pages) };
    });
  });
  const reported: unknown[] = [];
  const use = [mcp({ servers: { s: { url: server.url, maxBytes: 100_000 } } })];
  const run = agent({ model: scripted("Done."), use }).run({ prompt: "Go", onError: (error) => reported.push(error) });
  assertEquals([(await run.result).status, pages], ["done", 3]);
  assertEquals(reported.map((error) => error instanceof Error && String(error.cause)), [
    "Error: The list of tools of the MCP server has more than 100000 bytes.",
  ]);
});
