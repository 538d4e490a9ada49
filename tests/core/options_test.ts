/**
 * Options that types forbid: each is refused where it is given, and no guard or approval is lost.
 *
 * @module
 */
import { agent, deny, type Middleware, only, rewrite, serve, state, tool, when } from "@jizai/jizai";
import { compact } from "@jizai/jizai/middleware/compaction";
import { optional } from "@jizai/jizai/middleware/optional";
import { within } from "@jizai/jizai/middleware/within";
import { scripted } from "@jizai/jizai/model/scripted";
import { recordable } from "@jizai/jizai/replay";
import { assertEquals, assertInstanceOf, assertRejects, assertThrows } from "@std/assert";
import * as z from "zod";
import { lines } from "../support/transcript_lines.ts";

const untypedAgent = agent as (options: object) => ReturnType<typeof agent>; // as code without types calls it
const untypedTool = tool as (options: object) => ReturnType<typeof tool>; // as code without types calls it
const untypedServe = serve as (assistant: unknown, options: object) => ReturnType<typeof serve>; // as code without types calls it

const named = { name: "pay", description: "Pays", input: z.object({}), execute: () => "paid" };
const guard: Middleware = { name: "guard", approval: () => Promise.resolve(deny("No.")) };
const promise = Promise.resolve(guard) as Middleware; // a forgotten await

Deno.test("tool() refuses an `ask` that is neither a boolean nor a function", () => {
  for (const ask of ["yes", 1, null, {}]) {
    const message = `Cannot create tool "pay": its \`ask\` is ${ask}; expected true, false or a function`;
    assertThrows(() => untypedTool({ ...named, ask }), TypeError, message);
  }
});

Deno.test("tool() and agent() refuse an option that they do not have", () => {
  assertThrows(
    () => untypedTool({ ...named, needsApproval: true }),
    TypeError,
    'Cannot create tool "pay": there is no option "needsApproval"; expected one of name, description, input, ask,',
  );
  assertThrows(
    () => untypedAgent({ model: scripted(), middleware: [guard] }),
    TypeError,
    'Cannot create the agent "agent": there is no option "middleware"; expected one of name, description, vars, model,',
  );
});

Deno.test("run(), resume(), start() and compact() refuse an option that they do not have", () => {
  const assistant = agent({ model: scripted() });
  const options = { prompt: "Hi", session: "s", answers: [], ownr: "ada" };
  const sink = { write() {}, cork() {}, uncork() {}, full: undefined, close() {} };
  const complaint = 'Cannot run: there is no option "ownr"; expected one of prompt, messages, session, answers, store,';
  const starts: readonly (() => unknown)[] = [
    () => assistant.run(options),
    () => assistant.resume(options),
    () => assistant.start(options, sink),
    () => compact(assistant, options),
    () => recordable(assistant).run({ ...options, record: true }),
    () => recordable(assistant).start(options, sink),
  ];
  for (const start of starts) assertThrows(start, TypeError, complaint);
  const server = { prompt: "Hi", tools: [] };
  assertThrows(() => assistant.run(server), TypeError, 'Cannot run: there is no option "tools"');
});

Deno.test("stop() and send() refuse an option that they do not have", async () => {
  const run = agent({ model: scripted("Hi") }).run("Hi");
  const complaint = 'Cannot stop the run: there is no option "rolback"; expected one of rollback';
  assertThrows(() => run.stop("stop", { rolback: true } as object), TypeError, complaint);
  await assertRejects(() => run.send("Go on", { aftr: "calls" } as object), TypeError, 'there is no option "aftr"');
  const untyped = { after: "call" } as object;
  await assertRejects(() => run.send("Go on", untyped), TypeError, "`after` is call; expected batch, calls");
  assertEquals((await run.result).text, "Hi");
});

Deno.test("state() and rewrite() refuse an option, and a lifetime, that they do not have", () => {
  const untypedState = state as (...args: readonly unknown[]) => unknown; // as code without types calls it
  const make = (options: object) => untypedState("seen", () => 0, options);
  const lifetimes =
    'Cannot create the state "seen": there is no option "lifetimes"; expected one of lifetime, version,';
  assertThrows(() => make({ lifetimes: "session" }), TypeError, lifetimes);
  const forever = 'Cannot create the state "seen": `lifetime` is forever; expected run, session';
  assertThrows(() => make({ lifetime: "forever" }), TypeError, forever);
  const untypedRewrite = rewrite as (options: unknown) => unknown; // as code without types calls it
  const rewriters = 'Cannot create rewrite(): there is no option "txt"; expected one of text, reasoning, call';
  assertThrows(() => untypedRewrite({ txt: () => ["", ""] }), TypeError, rewriters);
  assertThrows(
    () => untypedRewrite(null),
    TypeError,
    "Cannot create rewrite(): got Null; expected an object with text",
  );
});

Deno.test("tool() creates a variant of a tool, and agent() accepts each of its options", async () => {
  const copy = untypedTool({ ...tool(named), name: "pay_later" });
  assertEquals([copy.definition.name, copy.name], ["pay_later", "pay_later"]);
  const input = z.object({});
  tool({
    name: "all",
    description: "Has all options",
    input,
    execute: () => "",
    ask: () => false,
    idempotent: true,
    parallel: true,
    readOnly: true,
  });
  const all = {
    name: "all",
    description: "Has all options",
    vars: {},
    model: scripted("Hello!"),
    instructions: "Be kind.",
    output: undefined,
    tools: [],
    use: [],
    order: "given",
    limits: {},
    observe: () => {},
    strict: true,
    now: () => 0,
    trace: undefined,
  };
  assertEquals((await untypedAgent(all).run("Hi").result).text, "Hello!");
});

Deno.test("tool() keeps the options that a class declares as methods or getters", async () => {
  class Pay {
    get name() {
      return "pay";
    }
    get description() {
      return "Pays";
    }
    get input() {
      return z.object({});
    }
    get parallel() {
      return false;
    }
    execute() {
      return "paid";
    }
  }
  class Guarded extends Pay {
    ask() {
      return true;
    }
  }
  class Asking extends Pay {
    get ask() {
      return true;
    }
  }
  async function run(options: Pay) {
    const model = scripted({ calls: [["pay", {}]] }, "Done.");
    const { status, messages } = await agent({ model, tools: [tool(options)] }).run("Hi").result;
    return [status, lines(messages).at(2)];
  }
  assertEquals(await run(new Pay()), ["done", "ok paid"]);
  assertEquals([await run(new Guarded()), await run(new Asking())], [["paused", undefined], ["paused", undefined]]);
  assertEquals([tool(new Pay()).parallel, tool(new Pay()).description], [false, "Pays"]);
});

Deno.test("a tool that was changed to an `ask` of another type asks a person", async () => {
  const pay = { ...tool(named), ask: "yes" as never };
  const { status, questions } = await agent({ model: scripted({ calls: [["pay", {}]] }), tools: [pay] }).run("Hi")
    .result;
  assertEquals([status, questions.map(({ questions }) => questions)], ["paused", [["Run pay?"]]]);
});

Deno.test("agent(), when(), only(), optional() and within() refuse a promise of a middleware", () => {
  const awaited = "it is a promise or another thenable; await it";
  assertThrows(() => agent({ model: scripted(), use: [promise] }), TypeError, `Cannot use use[0]: ${awaited}`);
  const wrappers = [
    () => when(() => true, promise),
    () => only("pay", promise),
    () => optional(promise),
    () => within(1_000, promise),
  ];
  for (const wrap of wrappers) assertThrows(wrap, TypeError, `Cannot use a middleware: ${awaited}`);
});

Deno.test("agent() refuses a list in `use`", () => {
  const message = "Cannot use use[0]: expected a middleware, an object with hooks";
  assertThrows(() => untypedAgent({ model: scripted(), use: [[guard]] }), TypeError, message);
});

Deno.test("agent() and serve() refuse a choice that they do not have", async () => {
  const model = scripted("Hello!");
  const order = 'Cannot create the agent "agent": `order` is sorted; expected given, declared';
  assertThrows(() => untypedAgent({ model, order: "sorted" }), TypeError, order);
  const assistant = agent({ model });
  const busy = "Cannot serve: `busy` is wait; expected refuse, queue, replace";
  assertThrows(() => untypedServe(assistant, { busy: "wait" }), TypeError, busy);
  const gone = "Cannot serve: `onClientGone` is continue; expected stop, drain, detach";
  assertThrows(() => untypedServe(assistant, { onClientGone: "continue" }), TypeError, gone);
  const errors: unknown[] = [];
  const app = untypedServe(assistant, {
    onClientGone: () => "continue",
    onError: (error: unknown) => errors.push(error),
  });
  const body = JSON.stringify({ prompt: "Hi" });
  const { status } = await app.request("/runs", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  assertEquals([status, errors.map(String)], [500, [`TypeError: ${gone}`]]);
});

Deno.test("tool() and agent() name the schema that has a type without JSON, and keep the cause", () => {
  const input = z.object({ day: z.date() });
  const error = assertThrows(() => tool({ ...named, input }), TypeError);
  const reason = "Date cannot be represented in JSON Schema";
  assertEquals(error.message, `Cannot describe tool "pay": ${reason}; expected types that JSON has`);
  assertInstanceOf(error.cause, Error);
  const output = `Cannot describe output: ${reason}`;
  assertThrows(() => agent({ model: scripted(), output: input }), TypeError, output);
});

Deno.test("agent() refuses tools that are no list, or not made by tool()", () => {
  const model = scripted();
  const list = "Cannot create the agent: expected a list of tools in `tools`";
  assertThrows(() => untypedAgent({ model, tools: {} }), TypeError, list);
  assertThrows(() => untypedAgent({ model, tools: named }), TypeError, list);
  const source = (name: string) => `Cannot create the agent: "${name}" has a tool that was not made by tool()`;
  for (const raw of [named, { name: "raw", parameters: {} }, undefined, "look", Promise.resolve(tool(named))]) {
    assertThrows(() => untypedAgent({ model, tools: [raw] }), TypeError, source("tools"));
    assertThrows(() => untypedAgent({ model, use: [{ name: "mine", tools: [raw] }] }), TypeError, source("mine"));
  }
});

Deno.test("agent() and tool() without options say what is missing", () => {
  const nothing = undefined as unknown as object; // as code without types calls it
  assertThrows(() => untypedAgent(nothing), TypeError, 'Cannot create the agent "agent": it has no model; expected');
  assertThrows(() => untypedTool(nothing), TypeError, "Cannot create tool undefined: expected a name of");
});

Deno.test("agent() and tool() accept the exports of a module, and unknown options that are undefined", async () => {
  const options = await import(`data:text/javascript,export const name = "exported", model = { stream() {} };`);
  assertEquals(untypedAgent(options).name, "exported");
  assertEquals(untypedAgent({ model: scripted(), middleware: undefined }).name, "agent");
  assertEquals(untypedTool({ ...named, strict: undefined }).name, named.name);
});
