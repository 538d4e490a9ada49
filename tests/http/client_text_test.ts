/**
 * Texts of a client that the model reads beside the messages: tools, formats, edited inputs and the instructions of a compaction pass the `input` hooks.
 */
import {
  agent,
  type AnyTool,
  type InputContext,
  memory,
  type Middleware,
  type ModelRequest,
  refused,
  serve,
  text,
  textOf,
  tool,
  user,
} from "@jizai/jizai";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { moderation } from "@jizai/jizai/middleware/moderation";
import { redact } from "@jizai/jizai/middleware/redact";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { eventsOf, first, post, refusalOf } from "../support/requests.ts";

const wires = [agUi(), chatCompletions(), responses()];
const secret = "hunter2";

const parameters = { type: "object", properties: { color: { type: "string", description: `Not ${secret}` } } };
const paint = { name: "paint", description: `Paints ${secret}`, parameters };
const schema = { type: "object", properties: { answer: { const: secret } }, required: ["answer"] };
const hi = { role: "user", content: "Hi" };

/** By wire: a request with a tool of the client and, where the wire has one, a format. */
const requests: Readonly<Record<string, { readonly path: string; readonly body: object; readonly format?: object }>> = {
  chatCompletions: {
    path: "/v1/chat/completions",
    body: { messages: [hi], tools: [{ type: "function", function: paint }] },
    format: { response_format: { type: "json_schema", json_schema: { name: "answer", schema } } },
  },
  responses: {
    path: "/v1/responses",
    body: { input: "Hi", tools: [{ type: "function", ...paint }] },
    format: { text: { format: { type: "json_schema", name: "answer", schema } } },
  },
  agUi: {
    path: "/ag-ui",
    body: { threadId: "t", runId: "r", messages: [{ id: "1", ...hi }], tools: [paint] },
  },
};

/** A middleware that records what passes `input`. */
function watching(use: NonNullable<Middleware["input"]> = (_, next) => next()) {
  const seen: (readonly [InputContext["source"], string])[] = [];
  const watch: Middleware = {
    name: "watch",
    input(ctx, next) {
      for (const message of ctx.messages) seen.push([ctx.source, message.role === "user" ? textOf(message) : ""]);
      return use(ctx, next);
    },
  };
  return { seen, watch };
}

/** Refuses the messages of one source. */
const refusing = (source: string): Middleware => ({
  name: "refusing",
  input: (ctx, next) => ctx.source === source ? Promise.resolve(refused("Not here.")) : next(),
});

/** Puts `text` in the place of each message of one source. */
const replacing = (source: string, text: string): Middleware => ({
  name: "replacing",
  input: (ctx, next) => next(ctx.source === source ? { messages: [user(text)] } : {}),
});

/** Returns what a model reads of a request, except for its messages. */
const readOf = ({ instructions, tools, options }: ModelRequest) => JSON.stringify([instructions, tools, options]);

for (const [name, { path, body, format }] of Object.entries(requests)) {
  const definition = JSON.stringify({ name: "paint", description: paint.description, schema: parameters });

  Deno.test(`${name}() passes each tool of a client through the input hooks, as one message`, async () => {
    const { seen, watch } = watching();
    const model = scripted("Done.");
    await (await post(serve(agent({ model, use: [watch] }), { wires }), path, body)).text();
    assertEquals(seen, [["client_tool", definition], ["prompt", "Hi"]]);
    assertEquals(model.requests[0]?.tools[0]?.description, paint.description);
  });

  Deno.test(`${name}() offers the model the tool that a hook has put in place of the client's`, async () => {
    const model = scripted({ calls: [["paint", { color: "red" }]] }, "Unreached.");
    const app = serve(agent({ model, use: [redact({ secrets: [secret] })] }), { wires });
    const response = await (await post(app, path, body)).text();
    assertEquals(model.requests[0]?.tools, [{
      name: "paint",
      description: "Paints [redacted]",
      schema: { type: "object", properties: { color: { type: "string", description: "Not [redacted]" } } },
    }]);
    assertEquals([response.includes("paint"), model.requests.length], [true, 1]); // the client still runs it
  });

  Deno.test(`${name}() refuses a request whose tool a hook refuses, as one whose prompt it refuses`, async () => {
    for (const guard of [refusing("client_tool"), moderation({ moderator: { moderate: flagged } })]) {
      const model = scripted();
      const app = serve(agent({ model, use: [guard] }), { wires });
      const text = await (await post(app, path, body)).text();
      assertEquals([/Not here\.|The message was refused\./.test(text), model.requests.length], [true, 0]);
    }
  });

  Deno.test(`${name}() refuses a request whose tool a hook has made unusable`, async () => {
    const own: AnyTool = tool({ name: "own", description: "Own", input: z.object({}), execute: () => "" });
    const texts = {
      "no JSON": `Cannot paint`,
      "no object": `["paint"]`,
      "no name": `{"description":"Paints","schema":{}}`,
      "a bad name": `{"name":"a b","description":"Paints","schema":{}}`,
      "no description": `{"name":"paint","schema":{}}`,
      "no schema": `{"name":"paint","description":"Paints","schema":[]}`,
      "the name of an own tool": `{"name":"own","description":"Paints","schema":{}}`,
    };
    for (const [what, text] of Object.entries(texts)) {
      const model = scripted();
      const app = serve(agent({ model, tools: [own], use: [replacing("client_tool", text)] }), { wires });
      const answer = await (await post(app, path, body)).text();
      assertEquals([what, /a hook changed the/.exec(answer)?.[0], model.requests.length], [
        what,
        "a hook changed the",
        0,
      ]);
    }
  });

  if (!format) continue;

  Deno.test(`${name}() passes the format of the answer through the input hooks`, async () => {
    const { seen, watch } = watching();
    const model = scripted(`{"answer":"hunter2"}`);
    await (await post(serve(agent({ model, use: [watch] }), { wires }), path, { ...body, ...format })).text();
    assertEquals(seen, [["client_tool", definition], ["format", JSON.stringify(schema)], ["prompt", "Hi"]]);
    assertEquals(model.requests[0]?.options.output, schema);
  });

  Deno.test(`${name}() asks the model for the format that a hook has put in place of the client's`, async () => {
    const model = scripted(`{"answer":"none"}`);
    const app = serve(agent({ model, use: [redact({ secrets: [secret] })] }), { wires });
    await (await post(app, path, { ...body, ...format })).text();
    const [request] = model.requests;
    assertEquals(request?.options.output, { ...schema, properties: { answer: { const: "[redacted]" } } });
    assertEquals(readOf(request as ModelRequest).includes(secret), false);
  });

  Deno.test(`${name}() refuses a request whose format a hook refuses or makes unusable`, async () => {
    for (const guard of [refusing("format"), replacing("format", "none"), replacing("format", "[]")]) {
      const model = scripted();
      const app = serve(agent({ model, use: [guard] }), { wires });
      const text = await (await post(app, path, { ...body, ...format })).text();
      assertEquals([/Not here\.|a hook changed the format/.test(text), model.requests.length], [true, 0]);
    }
  });

  Deno.test(`${name}() does not review a format beside the agent's own, which the model reads in its place`, async () => {
    const { seen, watch } = watching();
    const model = scripted(`{"city":"Kyoto"}`);
    const output = z.object({ city: z.string() });
    await (await post(serve(agent({ model, output, use: [watch] }), { wires }), path, { ...body, ...format })).text();
    assertEquals(seen.map(([source]) => source), ["client_tool", "prompt"]);
    assertEquals(readOf(model.requests[0] as ModelRequest).includes("const"), false);
  });
}

function flagged(parts: readonly { readonly type: string; readonly text?: string }[]) {
  return Promise.resolve({ flagged: parts.some(({ text }) => text?.includes(secret)), categories: [] });
}

/** A served agent that asks before it pays, and what it has paid. */
function shop(use: readonly Middleware[], ...rest: readonly ScriptedAnswer[]) {
  const paid: unknown[] = [];
  const pay = tool({
    name: "pay",
    description: "Pays",
    input: z.looseObject({ to: z.string() }),
    ask: true,
    execute(input) {
      paid.push(input);
      return "Paid.";
    },
  });
  const call = { calls: [{ id: "call_1", name: "pay", input: { to: "Ada" } }] };
  const model = scripted(call, ...rest);
  const app = serve(agent({ model, tools: [pay], use }), { store: memory(), session: () => "s", wires });
  const answer = (more: object) => post(app, "/sessions/s/answers", { answers: [{ callId: "call_1", ...more }] });
  const show = async () => await (await app.request("/sessions/s")).json();
  return { app, model, pay, paid, answer, show };
}

Deno.test("an edited input passes the input hooks, as one message", async () => {
  const { seen, watch } = watching();
  const { app, paid, answer } = shop([watch], "Done.");
  await eventsOf(post(app, "/runs", { prompt: "Pay" }));
  await eventsOf(answer({ type: "approve", input: { to: "Bob" } }));
  assertEquals([seen, paid], [[["prompt", "Pay"], ["edit", '{"to":"Bob"}']], [{ to: "Bob" }]]);
});

Deno.test("an approval without an edit, or with the input that was shown, passes no input hook", async () => {
  for (const input of [undefined, { to: "Ada" }]) {
    const { seen, watch } = watching();
    const { app, paid, answer } = shop([watch], "Done.");
    await eventsOf(post(app, "/runs", { prompt: "Pay" }));
    await eventsOf(answer({ type: "approve", input }));
    assertEquals([seen, paid], [[["prompt", "Pay"]], [{ to: "Ada" }]]);
  }
});

Deno.test("the input that a hook puts in place of an edited one runs, and the model reads of it alone", async () => {
  const again = { calls: [{ id: "call_2", name: "pay", input: { to: "[redacted]" } }] };
  const { app, model, paid, answer } = shop([redact({ secrets: [secret] })], again, "Done.");
  await eventsOf(post(app, "/runs", { prompt: "Pay" }));
  const events = await eventsOf(answer({ type: "approve", input: { to: secret }, always: "input" }));
  assertEquals([paid, first("run.finished", events).text], [[{ to: "[redacted]" }, { to: "[redacted]" }], "Done."]); // the rule has the input that ran
  assertEquals(JSON.stringify(model.requests.map(({ messages }) => messages)).includes(secret), false);
});

Deno.test("a refused edit leaves the pause as it was, and other answers are accepted", async () => {
  for (const guard of [refusing("edit"), replacing("edit", "none"), replacing("edit", '{"to":1}')]) {
    const { app, model, paid, answer, show } = shop([guard], "Done.");
    await eventsOf(post(app, "/runs", { prompt: "Pay" }));
    const before = await show();
    const [status] = await refusalOf(answer({ type: "approve", input: { to: "Bob" } }));
    assertEquals([status === 403 || status === 400, await show(), paid], [true, before, []]);
    await eventsOf(answer({ type: "approve" }));
    assertEquals([paid, model.requests.length], [[{ to: "Ada" }], 2]);
  }
});

Deno.test("a refused edit does not use up the resume token of its pause", async () => {
  const keys = [{ id: "k1", secret: "a secret of at least thirty-two bytes" }];
  for (const store of [undefined, memory()]) {
    const paid: unknown[] = [];
    const { pay, model } = shop([], "Done.");
    const noted: Middleware = {
      name: "noted",
      execute: (ctx) => (paid.push(ctx.input), Promise.resolve(text("Paid."))),
    };
    const app = serve(agent({ model, tools: [pay], use: [refusing("edit"), noted] }), {
      resumeTokens: resumeTokens({ keys }),
      ...(store && { store }),
    });
    const events = await eventsOf(post(app, "/runs", { prompt: "Pay" }));
    const { resumeToken } = first("run.paused", events);
    const { session } = first("run.started", events);
    const answer = (more: object) => {
      const answers = [{ callId: "call_1", type: "approve", ...more }];
      return post(app, `/sessions/${session}/answers`, { answers, resumeToken });
    };
    const [status] = await refusalOf(answer({ input: { to: "Bob" } }));
    assertEquals([status, paid], [403, []]);
    await eventsOf(answer({}));
    assertEquals(paid, [{ to: "Ada" }]);
  }
});

Deno.test("answers with a tool or a format that a hook refuses leave the pause as it was", async () => {
  for (const source of ["client_tool", "format"]) {
    const { app, paid, show } = shop([refusing(source)], "Done.");
    const response = await (await post(app, "/v1/responses", { input: "Pay" })).json();
    const { id } = response.output.find(({ type }: { readonly type: string }) => type === "mcp_approval_request");
    const before = await show();
    const input = [{ type: "mcp_approval_response", approval_request_id: id, approve: true }];
    const more = source === "format"
      ? { text: { format: { type: "json_schema", name: "answer", schema } } }
      : { tools: [{ type: "function", ...paint }] };
    const [status, error] = await refusalOf(post(app, "/v1/responses", { input, ...more }));
    assertEquals([status, /Not here\./.test(JSON.stringify(error)), await show(), paid], [403, true, before, []]);
    await (await post(app, "/v1/responses", { input })).text();
    assertEquals(paid, [{ to: "Ada" }]);
  }
});

Deno.test("the instructions of a compaction pass the input hooks, as one message", async () => {
  const { seen, watch } = watching();
  const given: string[] = [];
  const summarize: Middleware = {
    name: "summarize",
    compact(ctx, next) {
      given.push(ctx.instructions);
      return next();
    },
  };
  const use = [redact({ secrets: [secret] }), watch, summarize, compaction()];
  const app = serve(agent({ model: scripted("Hello."), use }), { store: memory(), session: () => "s" });
  await eventsOf(post(app, "/runs", { prompt: "Hi" }));
  await eventsOf(post(app, "/sessions/s/compact", { instructions: `Keep ${secret}.` }));
  await eventsOf(post(app, "/sessions/s/compact", {}));
  assertEquals(seen, [["prompt", "Hi"], ["instructions", "Keep [redacted]."]]);
  assertEquals(given, ["Keep [redacted].", ""]);
});

Deno.test("a compaction whose instructions are refused is refused, and the transcript stays", async () => {
  const model = scripted("Hello.");
  const app = serve(agent({ model, use: [refusing("instructions"), compaction()] }), {
    store: memory(),
    session: () => "s",
  });
  await eventsOf(post(app, "/runs", { prompt: "Hi" }));
  const { messages } = await (await app.request("/sessions/s")).json();
  const events = await eventsOf(post(app, "/sessions/s/compact", { instructions: "Short." }));
  const { status, reason } = first("run.finished", events);
  assertEquals([status, reason, events.some(({ type }) => type === "compact.started")], [
    "cancelled",
    "Not here.",
    false,
  ]);
  const after = await (await app.request("/sessions/s")).json();
  assertEquals([after.messages, "run" in after, model.requests.length], [messages, false, 1]);
});

Deno.test("redact() masks texts, numbers and keys of an edited input, which stays JSON", async () => {
  const { app, model, paid, answer } = shop([redact({ secrets: [secret, "4711"] })], "Done.");
  await eventsOf(post(app, "/runs", { prompt: "Pay" }));
  const key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC";
  await eventsOf(answer({ type: "approve", input: { to: `"${secret}"`, pin: 4711, [secret]: [key, "4711\n"] } }));
  assertEquals(paid, [{ to: '"[redacted]"', pin: "[redacted]", "[redacted]": ["[redacted]", "[redacted]\n"] }]);
  assertEquals(/hunter2|4711/.test(JSON.stringify(model.requests.map(({ messages }) => messages))), false);
});

Deno.test("moderation() refuses an edit, a tool, a format and instructions that the service flags", async () => {
  const use = [moderation({ moderator: { moderate: flagged } }), compaction()];
  const { app, model, paid, answer } = shop(use, "Done.");
  await eventsOf(post(app, "/runs", { prompt: "Pay" }));
  const [status] = await refusalOf(answer({ type: "approve", input: { to: secret } }));
  assertEquals([status, paid], [403, []]);
  await eventsOf(answer({ type: "deny" }));
  const events = await eventsOf(post(app, "/sessions/s/compact", { instructions: secret }));
  assertEquals(first("run.finished", events).reason, "The message was refused.");
  for (const { path, body, format = {} } of Object.values(requests)) {
    for (const asked of [body, { ...body, tools: undefined, ...format }]) {
      if (path === "/ag-ui" && asked !== body) continue; // it has no format
      const text = await (await post(app, path, asked)).text();
      assertEquals([path, text.includes("The message was refused.")], [path, true]);
    }
  }
  assertEquals(model.requests.length, 2);
});

Deno.test("a run whose hook does not end for a tool of its client can be stopped, and gives its session back", async () => {
  const begun = Promise.withResolvers<void>();
  const hanging: Middleware = {
    name: "hanging",
    input(ctx, next) {
      if (ctx.source !== "client_tool") return next();
      begun.resolve();
      return new Promise(() => {});
    },
  };
  const app = serve(agent({ model: scripted("Hello."), use: [hanging], limits: { grace: 1 } }), {
    store: memory(),
    session: () => "s",
    wires,
  });
  const response = await post(app, "/ag-ui", requests.agUi?.body);
  await begun.promise;
  const { run } = await (await app.request("/sessions/s")).json();
  assertEquals((await post(app, `/runs/${run.id}/stop?session=s`, {})).status, 204);
  assertEquals((await response.text()).includes('"outcome":{"type":"cancelled"}'), true);
  assertEquals(first("run.finished", await eventsOf(post(app, "/runs", { prompt: "Hi" }))).text, "Hello.");
});
