import { agent, memory, type Middleware, serve, type ServeOptions, tool } from "@jizai/jizai";
import { answersOf, askDuring } from "@jizai/jizai/kit";
import { redact } from "@jizai/jizai/middleware/redact";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { mcpWire } from "@jizai/jizai/wire/mcp";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { accept, ask, call, type JsonObject } from "../support/mcp_calls.ts";
import type { App } from "../support/requests.ts";

/** Serves a shop, whose tool `pay` asks before it pays. `paid` receives what was paid. */
function shop(paid: number[], options: Partial<ServeOptions> = {}) {
  const pay = tool({
    name: "pay",
    description: "Pays",
    input: z.object({ amount: z.number() }),
    ask: true,
    execute: ({ amount }) => `Paid ${paid.push(amount) && amount}.`,
  });
  const other = tool({ name: "other", description: "Pays nothing", input: z.object({}), execute: () => "Nothing." });
  const model = scripted({ calls: [["pay", { amount: 5 }]] }, "It is paid.");
  return serve(agent({ model, tools: [pay, other] }), {
    wires: [mcpWire({ tools: ["pay", "other"] })],
    onError() {},
    ...options,
  });
}

const arguments_ = { amount: 3 };

/** Returns the texts of a result. */
function textsOf({ content }: JsonObject): readonly unknown[] {
  return Array.isArray(content) ? content.map((each) => each.text) : [];
}

/** Answers a call that waits. */
async function answer(app: App, waiting: JsonObject, params: JsonObject, name = "pay"): Promise<JsonObject> {
  return await call(app, name, { arguments: arguments_, requestState: waiting.requestState, ...params });
}

Deno.test("mcpWire() shows an approval as a form, and pays once it is accepted, also in another process", async () => {
  const paid: number[] = [];
  const store = memory();
  const waiting = await call(shop(paid, { store }), "pay", { arguments: arguments_ });
  const [[name, request] = ["", {}]] = Object.entries(Object(waiting.inputRequests));
  assertEquals([waiting.resultType, /^call@.+-1@\d+$/.test(name), request], ["input_required", true, {
    method: "elicitation/create",
    params: {
      mode: "form",
      message: 'Run pay?\npay {"amount":3}',
      requestedSchema: { type: "object", properties: {}, required: [] },
    },
  }]);
  assertEquals(paid, []);
  assertEquals(textsOf(await answer(shop(paid, { store }), waiting, { inputResponses: accept(waiting) })), ["Paid 3."]);
  assertEquals(paid, [3]);
});

Deno.test("mcpWire() continues an agent that waits, and its answer is the result", async () => {
  const paid: number[] = [];
  const app = shop(paid);
  const waiting = await call(app, "agent", { arguments: { prompt: "Pay" } });
  const params = { arguments: { prompt: "Pay" }, requestState: waiting.requestState };
  const { content, ...rest } = await call(app, "agent", { ...params, inputResponses: accept(waiting) });
  assertEquals([textsOf({ content })[0], rest.resultType, paid], ["It is paid.", "complete", [5]]);
});

Deno.test("mcpWire() needs no store for an answer on a server with resume tokens", async () => {
  const paid: number[] = [];
  const keys = [{ id: "k1", secret: "at least 32 bytes of your own choice" }];
  const waiting = await call(shop(paid, { resumeTokens: resumeTokens({ keys }) }), "pay", { arguments: arguments_ });
  const app = shop(paid, { resumeTokens: resumeTokens({ keys }) });
  assertEquals(textsOf(await answer(app, waiting, { inputResponses: accept(waiting) })), ["Paid 3."]);
  const forged = resumeTokens({ keys: [{ id: "k1", secret: "other bytes, of which there are also 32" }] });
  const { error } = await answer(shop(paid, { resumeTokens: forged }), waiting, { inputResponses: accept(waiting) });
  assertEquals([Object(error).data.code, paid], ["forged", [3]]);
});

Deno.test("mcpWire() stores no secret of a call that redact() masks", async () => {
  const store = memory();
  const send = tool({
    name: "send",
    description: "Sends",
    input: z.object({ text: z.string() }),
    ask: true,
    execute: ({ text }) => `Sent ${text}`,
  });
  const app = serve(agent({ model: scripted(), tools: [send], use: [redact({ secrets: ["hunter2"] })] }), {
    store,
    session: () => "s1",
    wires: [mcpWire({ tools: ["send"] })],
  });
  const params = { arguments: { text: "hunter2" } };
  const waiting = await call(app, "send", params);
  const texts = [waiting, await store.load("s1")].map((each) => JSON.stringify(each));
  assertEquals(texts.map((text) => [text.includes("hunter2"), text.includes("[redacted]")]), [
    [false, true],
    [false, true],
  ]);
  const answered = { ...params, requestState: waiting.requestState, inputResponses: accept(waiting) };
  assertEquals(textsOf(await call(app, "send", answered)), ["Sent [redacted]"]);
});

Deno.test("mcpWire() makes a call that another process takes over, without the model", async () => {
  const store = durable(memory().journal);
  const model = scripted();
  const stop = new AbortController();
  const { promise: began, resolve: begin } = Promise.withResolvers<void>();
  const done: string[] = [];
  const served = (execute: () => Promise<string>, options: Partial<ServeOptions>) => {
    const work = tool({ name: "work", description: "Works", input: z.object({}), idempotent: true, execute });
    return serve(agent({ model, tools: [work] }), {
      store,
      wires: [mcpWire({ tools: ["work"] })],
      grace: 0,
      ...options,
    });
  };
  const first = served(() => {
    begin();
    return new Promise(() => {});
  }, { signal: stop.signal, onError() {} });
  const result = call(first, "work");
  await began;
  stop.abort();
  assertEquals((await result).isError, true);
  await first.settled();
  const second = served(() => Promise.resolve(String(done.push("worked"))), {
    onEnd: ({ event }) => void done.push(event.type),
  });
  await (await second.recover()).over;
  await second.settled();
  assertEquals([done, model.requests.length], [["worked", "run.finished"], 0]);
});

for (const action of ["decline", "cancel"]) {
  Deno.test(`mcpWire() denies a call whose form is answered with ${action}`, async () => {
    const paid: number[] = [];
    const app = shop(paid);
    const waiting = await call(app, "pay", { arguments: arguments_ });
    const [name = ""] = Object.keys(Object(waiting.inputRequests));
    const { isError } = await answer(app, waiting, { inputResponses: { [name]: { action } } });
    assertEquals([isError, paid], [true, []]);
  });
}

Deno.test("mcpWire() counts an answer once", async () => {
  const paid: number[] = [];
  const app = shop(paid);
  const waiting = await call(app, "pay", { arguments: arguments_ });
  const answers = { inputResponses: accept(waiting) };
  const both = await Promise.all([answer(app, waiting, answers), answer(app, waiting, answers)]);
  assertEquals(both.filter(({ error }) => error === undefined).length, 1);
  const { error } = await answer(app, waiting, answers);
  assertEquals([Object(error).data.code, paid], ["unasked", [3]]);
});

Deno.test("mcpWire() refuses the answers of another owner", async () => {
  const paid: number[] = [];
  const app = shop(paid, { owner: (c) => c.req.header("x-user") });
  const as = (user: string) => ({ headers: { "x-user": user } });
  const waiting = await call(app, "pay", { arguments: arguments_ }, as("ada"));
  const params = { arguments: arguments_, requestState: waiting.requestState };
  const inputResponses = accept(waiting);
  for (const sent of [{ ...params, inputResponses }, params]) {
    assertEquals(Object((await call(app, "pay", sent, as("eve"))).error).data.code, "unknown");
  }
  assertEquals(textsOf(await call(app, "pay", { ...params, inputResponses }, as("ada"))), ["Paid 3."]);
  assertEquals(paid, [3]);
});

Deno.test("mcpWire() refuses a state that was changed in any character, and one of another call", async () => {
  const paid: number[] = [];
  const app = shop(paid);
  const waiting = await call(app, "pay", { arguments: arguments_ });
  const state = String(waiting.requestState);
  const changed = Array.from(state, (character, at) => {
    return state.slice(0, at) + (character === "0" ? "1" : "0") + state.slice(at + 1);
  });
  const message = "Cannot continue the call: its `requestState` was changed, or belongs to another call";
  const refused = { error: { code: -32602, message } };
  const inputResponses = accept(waiting);
  for (const requestState of [...changed, `${state}-TAMPERED`, ` ${state}`, "", 1, null, {}, state.slice(64)]) {
    assertEquals(await answer(app, waiting, { inputResponses, requestState }), refused, String(requestState));
  }
  assertEquals(await answer(app, waiting, { inputResponses, arguments: { amount: 3_000 } }), refused);
  assertEquals(await answer(app, waiting, { inputResponses }, "other"), refused);
  assertEquals(paid, []);
  assertEquals(textsOf(await answer(app, waiting, { inputResponses })), ["Paid 3."]);
});

Deno.test("mcpWire() asks again if no response answers a question, and refuses one of another shape", async () => {
  const paid: number[] = [];
  const app = shop(paid);
  const waiting = await call(app, "pay", { arguments: arguments_ });
  const [name = ""] = Object.keys(Object(waiting.inputRequests));
  for (const inputResponses of [{}, { other: { action: "accept" } }, { "call@another-run@9": { action: "accept" } }]) {
    assertEquals(await answer(app, waiting, { inputResponses }), waiting);
  }
  for (const response of [5, null, "yes", [], { action: "yes" }, { action: ["accept"] }, {}]) {
    const { error } = await answer(app, waiting, { inputResponses: { [name]: response } });
    assertEquals([Object(error).code, Object(error).data.field], [-32602, "params.inputResponses"]);
  }
  for (const inputResponses of [5, null, "yes", []]) {
    assertEquals(Object((await answer(app, waiting, { inputResponses })).error).code, -32602);
  }
  assertEquals(paid, []);
  assertEquals(textsOf(await answer(app, waiting, { inputResponses: accept(waiting) })), ["Paid 3."]);
});

Deno.test("mcpWire() tells a client that cannot ask what is asked, and leaves the run paused", async () => {
  const paid: number[] = [];
  const app = shop(paid, { session: () => "s1" });
  for (const capabilities of [{}, { elicitation: { url: {} } }]) {
    const result = await call(app, "pay", { arguments: arguments_ }, { capabilities });
    assertEquals([result.isError, ...textsOf(result)], [
      true,
      "The call waits for a person, whom this client cannot ask; expected a client of MCP 2026-07-28 with the capability " +
      'elicitation, or an answer to POST /sessions/s1/answers.\n\nRun pay?\npay {"amount":3}',
    ]);
  }
  const answers = [{ callId: "call_2", type: "approve" }];
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ answers });
  await (await app.request("/sessions/s1/answers", { method: "POST", headers, body })).text();
  assertEquals(paid, [3]);
});

Deno.test("mcpWire() asks for a text where a hook or a tool wants a reply", async () => {
  const pausing: Middleware = {
    name: "pausing",
    turn(ctx, next) {
      if (ctx.run.answers.length === 0) throw ctx.run.pause("Which city?");
      return next({ context: ctx.run.answers.flatMap((each) => each.type === "reply" ? [each.text] : []) });
    },
  };
  const app = serve(agent({ model: scripted("Kyoto it is."), use: [pausing] }), { wires: [mcpWire()] });
  const arguments_ = { prompt: "Where?" };
  const waiting = await call(app, "agent", { arguments: arguments_ });
  const [request] = Object.values(Object(waiting.inputRequests));
  assertEquals(Object(request).params, {
    mode: "form",
    message: "Which city?",
    requestedSchema: {
      type: "object",
      properties: { answer: { type: "string", title: "Answer" } },
      required: ["answer"],
    },
  });
  const params = { arguments: arguments_, requestState: waiting.requestState };
  for (const content of [undefined, {}, { answer: 5 }]) {
    const { error } = await call(app, "agent", { ...params, inputResponses: accept(waiting, content) });
    assertEquals(Object(error).code, -32602);
  }
  const inputResponses = accept(waiting, { answer: "Kyoto" });
  assertEquals(textsOf(await call(app, "agent", { ...params, inputResponses }))[0], "Kyoto it is.");
});

Deno.test("mcpWire() shows the form of a tool that asks while its call runs, round by round", async () => {
  const book = tool({
    name: "book",
    description: "Books a room",
    input: z.object({ city: z.string() }),
    execute({ city }, ctx) {
      const { answers: [answer] = [], saved } = answersOf(ctx) ?? {};
      const schema = { type: "object", properties: { nights: { type: "integer" } }, required: ["nights"] };
      if (!answer) throw askDuring(ctx, [{ name: "form", question: "How many nights?", input: { nights: 1 }, schema }]);
      const given = answer.type === "approve" ? answer.input : undefined;
      if (saved === undefined) throw askDuring(ctx, [{ name: "form", question: "Sure?" }], given);
      return `${city}: ${JSON.stringify(saved)} ${answer.type}`;
    },
  });
  const app = serve(agent({ model: scripted(), tools: [book] }), { wires: [mcpWire({ tools: ["book"] })] });
  const params = { arguments: { city: "Kyoto" } };
  const first = await call(app, "book", params);
  assertEquals(Object(Object.values(Object(first.inputRequests))[0]).params, {
    mode: "form",
    message: 'How many nights?\nform {"nights":1}',
    requestedSchema: { type: "object", properties: { nights: { type: "integer", default: 1 } }, required: ["nights"] },
  });
  const again = (waiting: JsonObject, content?: JsonObject) =>
    call(app, "book", { ...params, requestState: waiting.requestState, inputResponses: accept(waiting, content) });
  for (const content of [undefined, {}, { night: 2 }]) {
    assertEquals(Object((await again(first, content)).error).code, -32602);
  }
  const second = await again(first, { nights: 2 });
  assertEquals([second.resultType, second.requestState === first.requestState], ["input_required", false]);
  assertEquals(textsOf(await again(second, {})), ['Kyoto: {"nights":2} approve']);
  assertEquals(Object((await again(first, { nights: 3 })).error).data.code, "unasked");
});

Deno.test("mcpWire() asks for a text where a tool wants what no form can have", async () => {
  const schema = { type: "object", properties: { rooms: { type: "object" } } };
  const book = tool({
    name: "book",
    description: "Books rooms",
    input: z.object({}),
    execute(_, ctx) {
      const [answer] = answersOf(ctx)?.answers ?? [];
      if (!answer) throw askDuring(ctx, [{ name: "form", question: "Which rooms?", schema }]);
      return JSON.stringify(answer);
    },
  });
  const app = serve(agent({ model: scripted(), tools: [book] }), { wires: [mcpWire({ tools: ["book"] })] });
  const { requestState, ...waiting } = await call(app, "book");
  const [request] = Object.values(Object(waiting.inputRequests));
  assertEquals(Object.keys(Object(request).params.requestedSchema.properties), ["answer"]);
  const inputResponses = accept(waiting, { answer: '{"rooms":{}}' });
  const [text] = textsOf(await call(app, "book", { requestState, inputResponses }));
  assertEquals(JSON.parse(String(text)), { callId: "call/1", type: "reply", text: '{"rooms":{}}' });
});

Deno.test("mcpWire() keeps the questions open that a client does not answer", async () => {
  const paid: number[] = [];
  const pay = tool({
    name: "pay",
    description: "Pays",
    input: z.object({ amount: z.number() }),
    ask: true,
    execute: ({ amount }) => paid.push(amount),
  });
  const model = scripted({ calls: [["pay", { amount: 1 }], ["pay", { amount: 2 }]] }, "Both.");
  const app = serve(agent({ model, tools: [pay] }), { wires: [mcpWire()] });
  const params = { arguments: { prompt: "Pay" } };
  const first = await call(app, "agent", params);
  const [one = "", two = ""] = Object.keys(Object(first.inputRequests));
  const inputResponses = { [one]: { action: "accept" } };
  const second = await call(app, "agent", { ...params, requestState: first.requestState, inputResponses });
  assertEquals([paid, Object.keys(Object(second.inputRequests)).length, two.split("@")[0]], [[1], 1, "call_2"]);
  const last = { ...params, requestState: second.requestState, inputResponses: accept(second) };
  assertEquals([textsOf(await call(app, "agent", last))[0], paid], ["Both.", [1, 2]]);
});

Deno.test("mcpWire() never asks a person as the answer to a list", async () => {
  const [, { result }] = await ask(shop([]), "tools/list", { inputResponses: {} }) as [number, JsonObject];
  assertEquals(Object(result).resultType, "complete");
});
