import { agent, type AgentOptions, type CallResult, type Message, type Schema, tool, vars } from "@jizai/jizai";
import { mcp, type McpServer } from "@jizai/jizai/middleware/mcp";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { scripted } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { McpServer as Server } from "@modelcontextprotocol/server";
import { assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { barrier } from "../support/batch.ts";
import { served } from "../support/mcp_server.ts";

const city = z.object({ city: z.string() });

/** A server that knows the weather. */
function weather(server: Server): void {
  server.registerTool("weather", { description: "Current weather", inputSchema: city }, ({ city }) => {
    return { content: [{ type: "text", text: `Sun in ${city}` }] };
  });
}

/** A tool `name` without input that gives `result`, or fails. */
function gives(name: string, result: () => unknown) {
  return (server: Server) => server.registerTool(name, { description: name }, async () => await result() as never);
}

/** Has an agent make these calls, one batch of them; gives their results, what it was told, and the requests. */
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

Deno.test("mcp() keeps the rules that every middleware keeps", async () => {
  await testMiddleware(() => mcp({ servers: {} }));
});

for (const sessions of [false, true]) {
  const which = sessions ? "a server with sessions" : "a server without sessions";

  Deno.test(`mcp() brings the tools of ${which}, and leaves it`, async () => {
    await using server = served(weather, { sessions });
    const { results, tools } = await called([["mcp__sky__weather", { city: "Kyoto" }]], { sky: { url: server.url } });
    assertEquals(results, [ok("Sun in Kyoto")]);
    assertEquals(tools.map(({ name, description }) => [name, description]), [["mcp__sky__weather", "Current weather"]]);
    assertEquals(tools[0]?.schema.required, ["city"]);
    assertEquals(server.open, 0);
    assertEquals(
      server.heard.filter((method) => method !== "GET"),
      sessions
        ? ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call", "DELETE"]
        : ["server/discover", "tools/list", "tools/call"],
    );
  });

  Deno.test(`mcp() has ${which} hear that a call was stopped`, async () => {
    const running = Promise.withResolvers<void>();
    const heard = Promise.withResolvers<unknown>();
    await using server = served((server) => {
      server.registerTool("wait", { description: "Waits" }, ({ mcpReq: { signal } }) => {
        running.resolve();
        return new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            heard.resolve("aborted");
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
    assertEquals(await heard.promise, "aborted");
    assertEquals(server.open, 0);
  });
}

Deno.test("mcp() runs calls to two servers at once", async () => {
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

Deno.test("mcp() brings the tools that are named, and no others", async () => {
  await using server = served((server) => {
    for (const name of ["read", "write", "drop"]) gives(name, () => ({ content: [] }))(server);
  });
  const { tools, results } = await called([["mcp__db__drop", {}]], {
    db: { url: server.url, tools: ["write", "read", "fly"] },
  });
  assertEquals(tools.map(({ name }) => name), ["mcp__db__read", "mcp__db__write"]);
  assertEquals(results, [error(`There is no tool "mcp__db__drop". There is: mcp__db__read, mcp__db__write`)]);
});

Deno.test("mcp() makes every name one that providers accept, and no two the same", async () => {
  const long = "a".repeat(70);
  const names = ["files.read", "files_read", long, `${long}b`, "mine"];
  await using server = served((server) => {
    for (const name of names) gives(name, () => ({ content: [{ type: "text", text: name }] }))(server);
  });
  const mine = tool({ name: "mcp__s__mine", description: "", input: z.object({}), execute: () => "my own" });
  const { tools } = await called([], { s: { url: server.url } }, { tools: [mine] });
  assertEquals(tools.map(({ name }) => name), [
    "mcp__s__mine",
    "mcp__s__files_read",
    "mcp__s__files_read_7ee47fbd",
    `mcp__s__${"a".repeat(47)}_5904740b`,
    `mcp__s__${"a".repeat(47)}_8b03414b`,
    "mcp__s__mine_7e89edb6",
  ]);
  const calls = tools.map(({ name }) => [name, {}] as const);
  const { results } = await called(calls, { s: { url: server.url } }, { tools: [mine] });
  assertEquals(results, ["my own", ...names].map(ok));
});

Deno.test("mcp() brings a tool once that its server tells of twice", async () => {
  await using server = served((server) => {
    weather(server);
    const tool = { name: "weather", inputSchema: { type: "object" } } as const;
    server.server.setRequestHandler("tools/list", () => ({ tools: [tool, tool] }));
  });
  const { tools } = await called([["mcp__s__weather", { city: "Kyoto" }]], { s: { url: server.url } });
  assertEquals(tools.map(({ name, description }) => [name, description]), [["mcp__s__weather", "weather"]]);
});

Deno.test("mcp() gives media, files, links and structured content to the model", async () => {
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

Deno.test("mcp() gives what a server says of a failure as an error, and the input it refuses", async () => {
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

Deno.test("mcp() tells how far a call is", async () => {
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

Deno.test("mcp() does without a server that is not there, and tries it anew", async () => {
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
  assertEquals(notices, ["The tools of gone are not there now."]);
  assertEquals(reported, [`Error: Cannot use MCP server "gone"`]);
});

Deno.test("mcp() has the tools that a server has now, in each run", async () => {
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

Deno.test("mcp() does without a server that takes too long to let us in", async () => {
  const over = Promise.withResolvers<Response>();
  await using silent = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => over.promise);
  const url = `http://127.0.0.1:${silent.addr.port}`;
  const { status, notices, tools } = await called([], { silent: { url, time: 30 } });
  assertEquals([status, notices, tools], ["done", ["The tools of silent are not there now."], []]);
  over.resolve(new Response());
});

Deno.test("mcp() gives up a call that takes too long", async () => {
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

Deno.test("mcp() has a call fail whose server has gone, and tells the operator", async () => {
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

Deno.test("mcp() has guards asked about its calls as about any other", async () => {
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
  assertEquals([server.open, server.heard.includes("tools/call")], [0, false]);
  const answers = [{ callId: "call_1", type: "approve" }] as const;
  const { messages } = await assistant.resume({ session: "s1", answers }).result;
  assertEquals(resultsOf(messages), [ok("Published."), {
    status: "denied",
    parts: [{ type: "text", text: "mcp__s__weather is not permitted here." }],
  }]);
  assertEquals(server.open, 0);
});

Deno.test("mcp() sends headers that come with the run", async () => {
  await using server = served(weather);
  const use = [mcp<{ token: string }>({
    servers: { s: { url: server.url, headers: ({ vars }) => ({ authorization: `Bearer ${vars.token}` }) } },
  })];
  const model = scripted("One.");
  await agent({ vars: vars<{ token: string }>(), model, use }).run({ prompt: "Go", vars: { token: "t1" } }).result;
  assertEquals(server.headers.get("authorization"), "Bearer t1");
});

Deno.test("mcp() connects to nobody for a run that was stopped before", async () => {
  await using server = served(weather);
  const use = [mcp({ servers: { s: { url: server.url } } })];
  const { status } = await agent({ model: scripted(), use }).run({ prompt: "Go", signal: AbortSignal.abort() }).result;
  assertEquals([status, server.heard], ["aborted", []]);
});

Deno.test("mcp() refuses names, addresses and times that are none", () => {
  const url = "http://localhost/mcp";
  for (const name of ["", "a b", "a__b", "_a", "a".repeat(33)]) {
    assertThrows(() => mcp({ servers: { [name]: { url } } }), TypeError, "Cannot use MCP server");
  }
  assertThrows(() => mcp({ servers: { a: { url: "nowhere" } } }), TypeError);
  for (const time of [0, -1, NaN, 2 ** 31]) assertThrows(() => mcp({ servers: { a: { url, time } } }), RangeError);
});
