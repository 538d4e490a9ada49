import { agent, memory, type Middleware, type PersonAnswer, type Store, textOf } from "@jizai/jizai";
import { mcp } from "@jizai/jizai/middleware/mcp";
import { scripted } from "@jizai/jizai/model/scripted";
import { inputRequired, type McpServer as Server } from "@modelcontextprotocol/server";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { served } from "../support/mcp_server.ts";

const form = {
  mode: "form" as const,
  message: "How many nights?",
  requestedSchema: {
    type: "object" as const,
    properties: { nights: { type: "integer" as const, default: 1 }, name: { type: "string" as const } },
    required: ["nights", "name"],
  },
};

/** A hotel that asks for the nights, and then for a payment on a page, and books. `received` gets each request. */
function hotel(received: unknown[]) {
  return (server: Server) => {
    const inputSchema = z.object({ city: z.string() });
    server.registerTool("book", { description: "Books", inputSchema }, ({ city }, { mcpReq }) => {
      const { inputResponses, requestState } = mcpReq;
      const state = requestState();
      received.push({ city, inputResponses, state });
      if (state === undefined) {
        return inputRequired({ inputRequests: { "a/b": inputRequired.elicit(form) }, requestState: "one" });
      }
      const { action, content } = Object(inputResponses?.["a/b"]);
      if (action === "decline") return { content: [{ type: "text", text: "Nothing is booked." }] };
      if (state === "one") {
        const url = "https://pay.example/1";
        return inputRequired({
          inputRequests: { pay: inputRequired.elicitUrl({ message: "Pay", url }) },
          requestState: `two ${content?.nights} ${content?.name}`,
        });
      }
      return { content: [{ type: "text", text: `${city}: ${state}` }] };
    });
  };
}

/** Continues the same session in another agent, as another process does. */
function process(url: string, store: Store, use: readonly Middleware[] = []) {
  const model = scripted({ calls: [["mcp__hotel__book", { city: "Kyoto" }]] }, "Done.");
  const assistant = agent({ model, use: [...use, mcp({ servers: { hotel: { url } } })] });
  return {
    run: () => assistant.run({ prompt: "Book", session: "s1", store, onError() {} }).result,
    resume: (...answers: PersonAnswer[]) => {
      return agent({ model: scripted("Done."), use: [...use, mcp({ servers: { hotel: { url } } })] })
        .resume({ session: "s1", store, answers, onError() {} }).result;
    },
  };
}

Deno.test("mcp() asks a person what a server asks, and calls it again with the answers in another process", async () => {
  const received: unknown[] = [];
  await using server = served(hotel(received));
  const { run, resume } = process(server.url, memory());
  const first = await run();
  assertEquals(first.status, "paused");
  assertEquals(first.questions.map(({ schema: _, ...question }) => question), [{
    callId: "call_1/1",
    path: ["mcp__hotel__book"],
    tool: "form",
    input: { nights: 1 },
    questions: ['The MCP server "hotel" asks: How many nights? Fields: nights, name.'],
    suggestions: [{ type: "approve" }, { type: "deny" }],
  }]);
  const second = await resume({ callId: "call_1/1", type: "approve", input: { nights: 2, name: "Ada" } });
  assertEquals(second.questions.map(({ callId, tool, input, questions }) => [callId, tool, input, questions]), [[
    "call_1/2",
    "open_url",
    { url: "https://pay.example/1" },
    [
      'The MCP server "hotel" asks you to open a page of pay.example, https://pay.example/1, and to approve then: Pay',
    ],
  ]]);
  const third = await resume({ callId: "call_1/2", type: "approve" });
  const results = third.messages.flatMap((message) => message.role === "tool" ? message.results : []);
  assertEquals([third.status, results.map(textOf)], ["done", ["Kyoto: two 2 Ada"]]);
  assertEquals(received, [
    { city: "Kyoto", inputResponses: undefined, state: undefined },
    {
      city: "Kyoto",
      inputResponses: { "a/b": { action: "accept", content: { nights: 2, name: "Ada" } } },
      state: "one",
    },
    { city: "Kyoto", inputResponses: { pay: { action: "accept" } }, state: "two 2 Ada" },
  ]);
});

/** Runs a call of a server whose tool `name` asks with `result` until it has an answer, and then returns the answer as text. Each answer continues the call. */
async function asked(result: object, ...answers: (readonly PersonAnswer[])[]) {
  await using server = served((server) => {
    server.registerTool("book", { description: "Books" }, ({ mcpReq: { inputResponses } }) => {
      if (!inputResponses) return result as never;
      return { content: [{ type: "text", text: JSON.stringify(inputResponses) }] };
    });
  });
  const store = memory();
  const { run, resume } = process(server.url, store);
  const results = [await run()];
  for (const each of answers) results.push(await resume(...each));
  const last = results.at(-1)?.messages.flatMap((message) => message.role === "tool" ? message.results : []) ?? [];
  return { questions: results.map(({ questions }) => questions), text: last.map(textOf).join("\n") };
}

const nights = inputRequired({ inputRequests: { nights: inputRequired.elicit(form) } });

const answers: readonly { readonly answer: PersonAnswer; readonly sent: object | undefined }[] = [
  { answer: { type: "deny" }, sent: { action: "decline" } },
  { answer: { type: "approve" }, sent: undefined }, // no name
  { answer: { type: "approve", input: { nights: 1.5, name: "Ada" } }, sent: undefined },
  { answer: { type: "approve", input: { nights: "1", name: "Ada" } }, sent: undefined },
  { answer: { type: "approve", input: "Ada" }, sent: undefined },
  { answer: { type: "reply", text: "Ada" }, sent: undefined }, // of two fields
  {
    answer: { type: "reply", text: '{"nights":2,"name":"Ada"}' },
    sent: { action: "accept", content: { nights: 2, name: "Ada" } },
  },
];

for (const { answer, sent } of answers) {
  const which = JSON.stringify(answer);
  Deno.test(`mcp() ${sent ? "sends" : "asks again instead of sending"} the answer ${which} to a form`, async () => {
    const { questions: [first = [], second = []], text } = await asked(nights, [{ callId: "call_1/1", ...answer }]);
    assertEquals(first.map(({ callId }) => callId), ["call_1/1"]);
    assertEquals(second.map(({ callId }) => callId), sent ? [] : ["call_1/2"]);
    assertEquals(text, sent ? JSON.stringify({ nights: sent }) : "");
  });
}

Deno.test("mcp() sends a reply as the only text of a form", async () => {
  const requestedSchema = { type: "object" as const, properties: { name: { type: "string" as const } } };
  const name = inputRequired.elicit({ mode: "form", message: "Your name?", requestedSchema });
  const { text } = await asked(inputRequired({ inputRequests: { name } }), [
    { callId: "call_1/1", type: "reply", text: "Ada" },
  ]);
  assertEquals(text, '{"name":{"action":"accept","content":{"name":"Ada"}}}');
});

Deno.test("mcp() asks only the questions again that are not answered", async () => {
  const first = inputRequired.elicitUrl({ message: "First", url: "https://first.example/" });
  const second = inputRequired.elicitUrl({ message: "Second", url: "https://second.example/" });
  const { questions, text } = await asked(
    inputRequired({ inputRequests: { first, second } }),
    [{ callId: "call_1/2", type: "approve" }],
    [{ callId: "call_1/3", type: "deny" }],
  );
  assertEquals(questions.map((asked) => asked.map(({ callId, input }) => [callId, input])), [
    [["call_1/1", { url: "https://first.example/" }], ["call_1/2", { url: "https://second.example/" }]],
    [["call_1/3", { url: "https://first.example/" }]],
    [],
  ]);
  assertEquals(text, '{"second":{"action":"accept"},"first":{"action":"decline"}}');
});

for (
  const [which, request, reason] of [
    ["to open a script", { method: "elicitation/create", params: { mode: "url", message: "", url: "javascript:1" } }],
    [
      "too much",
      { method: "elicitation/create", params: { ...form, message: "x".repeat(100_000) } },
      "Cannot ask a person: the question of the MCP server has more than 100000 characters.",
    ],
  ] as const
) {
  Deno.test(`mcp() fails the call of a server that asks ${which}`, async () => {
    const { questions, text } = await asked({ resultType: "input_required", inputRequests: { request } });
    const expected = reason ?? "Cannot ask a person: the page of the MCP server has no URL of http or https.";
    assertEquals([questions, text], [[[]], expected]);
  });
}

Deno.test("mcp() fails the call of a server that asks for what its client did not offer", async () => {
  const hints = { ttlMs: 0, cacheScope: "private" };
  const results: Readonly<Record<string, object>> = {
    "server/discover": { supportedVersions: ["2026-07-28"], capabilities: { tools: {} }, ...hints },
    "tools/list": { tools: [{ name: "book", inputSchema: { type: "object" } }], ...hints },
    "tools/call": { resultType: "input_required", inputRequests: { folders: { method: "roots/list" } } },
  };
  await using http = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { id, method } = await request.json();
    return Response.json({ jsonrpc: "2.0", id, result: { resultType: "complete", ...results[method] } });
  });
  const { messages } = await process(`http://127.0.0.1:${http.addr.port}`, memory()).run();
  const texts = messages.flatMap((message) => message.role === "tool" ? message.results.map(textOf) : []);
  assertEquals(texts, ["Cannot answer the MCP server: it asks for roots/list, which is not supported."]);
});

Deno.test("mcp() calls a server again that asks for nothing, up to ten times", async () => {
  const states: unknown[] = [];
  await using server = served((server) => {
    server.registerTool("book", { description: "Books" }, ({ mcpReq }) => {
      states.push(mcpReq.requestState());
      return inputRequired({ requestState: `${states.length}` });
    });
  });
  const { messages } = await process(server.url, memory()).run();
  const results = messages.flatMap((message) => message.role === "tool" ? message.results.map(textOf) : []);
  assertEquals(results, ["Cannot finish the call: the MCP server asked 10 times to be called again."]);
  assertEquals(states, [undefined, "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
});

Deno.test("guards decide again about a call that continues with the answers for its server", async () => {
  const received: unknown[] = [];
  await using server = served(hotel(received));
  const store = memory();
  await process(server.url, store).run();
  const guard: Middleware = { name: "guard", approval: () => Promise.resolve({ type: "deny", reason: "Closed." }) };
  const answer = { callId: "call_1/1", type: "approve", input: { nights: 2, name: "Ada" } } as const;
  const { messages } = await process(server.url, store, [guard]).resume(answer);
  const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
  assertEquals(results.map(({ status }) => status), ["denied"]);
  assertEquals(received.length, 1);
});

Deno.test("mcp() offers no answers of a person to a server before 2026, which would wait for them", async () => {
  const offered: unknown[] = [];
  await using server = served((server) => {
    server.registerTool("book", { description: "Books" }, () => {
      offered.push(server.server.getClientCapabilities());
      return { content: [] };
    });
  }, { sessions: true });
  assertEquals((await process(server.url, memory()).run()).status, "done");
  assertEquals(offered, [{}]);
});
