import {
  agent,
  allow,
  type Approval,
  ask,
  denied,
  deny,
  memory,
  type Middleware,
  type Schema,
  text,
  tool,
} from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { at, batch, call, drop, runBatch, three, weather } from "../support/batch.ts";
import { withoutSchemas } from "../support/without_schemas.ts";

/** A guard with one hook. */
function guard(name: string, approval: NonNullable<Middleware["approval"]>) {
  return { name, approval };
}

const denies = guard("denies", () => Promise.resolve(deny("no")));
const asks = guard("asks", () => Promise.resolve(ask("Sure?")));
const blind = guard("blind", () => Promise.resolve(allow()));
const broken = guard("broken", () => Promise.reject(new Error("the guard broke")));
const passes = guard("passes", (_, next) => next());
/** Allows a question of the inner guards. */
const sees = guard("sees", async (_, next) => {
  const below = await next();
  return below.type === "ask" ? allow() : below;
});
/** Allows every decision of the inner guards. */
const insists = guard("insists", async (_, next) => {
  await next();
  return allow();
});
const swallows = guard("swallows", async (_, next) => {
  try {
    return await next();
  } catch {
    return allow();
  }
});

const asked = "paused: Sure?";
const matrix: readonly (readonly [above: Middleware, below: Middleware, outcome: string])[] = [
  [blind, blind, "ok ran"],
  [blind, passes, "ok ran"],
  [blind, denies, "denied no"],
  [blind, asks, asked],
  [blind, broken, "denied A guard failed."],
  [passes, blind, "ok ran"],
  [passes, denies, "denied no"],
  [passes, asks, asked],
  [passes, broken, "denied A guard failed."],
  [sees, blind, "ok ran"],
  [sees, denies, "denied no"],
  [sees, asks, "ok ran"],
  [sees, broken, "denied A guard failed."],
  [insists, denies, "denied no"],
  [insists, asks, "ok ran"],
  [insists, broken, "denied A guard failed."],
  [swallows, denies, "denied no"],
  [swallows, asks, asked],
  [swallows, broken, "denied A guard failed."],
  [asks, blind, asked],
  [asks, denies, "denied no"],
  [asks, sees, asked],
  [asks, asks, "paused: Sure?, Sure?"],
  [asks, broken, "denied A guard failed."],
  [denies, blind, "denied no"],
  [denies, asks, "denied no"],
  [denies, sees, "denied no"],
  [denies, broken, "denied no"],
  [broken, blind, "denied A guard failed."],
  [broken, denies, "denied A guard failed."],
];

/** Returns the outcome of one call: its result, or its question to a person. */
async function outcome(use: readonly Middleware[], tools = [weather(() => "ran")], name = "weather"): Promise<string> {
  const { result, lines } = await runBatch([call("a", { name })], { tools, use });
  if (result.status !== "paused") return lines[1] ?? result.status;
  return `paused: ${result.questions.flatMap(({ questions }) => questions).join(", ")}`;
}

for (const [above, below, expected] of matrix) {
  Deno.test(`a guard that ${above.name} over one that ${below.name}: ${expected}`, async () => {
    assertEquals(await outcome([above, below]), expected);
  });
}

/** Answers of guards that are no decisions, as code without types returns them. */
const noDecisions: readonly unknown[] = [
  ...[null, true, 0, 1, "", "allow", "deny", [], ["allow"], {}, () => allow(), Object.assign([], allow())],
  ...["allow", "ask", "deny"].flatMap((type) => [
    [type],
    [[type]],
    { toString: () => type },
    { valueOf: () => type },
    { [Symbol.toPrimitive]: () => type },
    new String(type),
    type.toUpperCase(),
    ` ${type}`,
    new Proxy({}, { get: () => () => type }),
  ]).map((type) => ({ type, reason: "no", questions: ["Sure?"] })),
  ...[null, false, true, 0, 1, "", {}, [], "toString", "constructor", "__proto__"].map((type) => ({ type })),
  ...[undefined, "Sure?", [undefined], [["Sure?"]], [{ toString: () => "Sure?" }], { length: 1, 0: "Sure?" }].map(
    (questions) => ({ type: "ask", questions }),
  ),
  { type: "allow", input: 1n },
  { type: "allow", input: () => ({ city: "a" }) },
];

for (const [index, given] of noDecisions.entries()) {
  Deno.test(`a guard whose answer is no decision denies the call: ${index} ${Deno.inspect(given)}`, async () => {
    const wrong = guard("wrong", () => Promise.resolve(given as Approval));
    const over = guard("over", async (_, next) => {
      await next();
      return given as Approval;
    });
    assertEquals(
      [await outcome([wrong]), await outcome([asks, wrong]), await outcome([wrong, insists]), await outcome([over])],
      Array(4).fill("denied A guard failed."),
    );
  });
}

Deno.test("a guard's answer is read once: a getter cannot return a deny first and an allow later", async () => {
  const types = (all: readonly string[]) => {
    let reads = 0;
    return { get: () => all[Math.min(reads++, all.length - 1)] };
  };
  const read = async (all: readonly string[]) => {
    const answer = Object.defineProperty({ reason: "no" }, "type", { ...types(all), enumerable: true });
    return await outcome([guard("turning", () => Promise.resolve(answer as unknown as Approval))]);
  };
  assertEquals(await read(["deny", "allow"]), "denied no");
  assertEquals(await read(["allow", "deny"]), "ok ran");
  let edits = 0;
  const input = new Proxy({ city: "" }, { get: (_, key) => key === "city" ? `city ${++edits}` : undefined });
  const seen: unknown[] = [];
  const moving = guard("moving", (ctx, next) => {
    seen.push(ctx.input);
    return seen.length === 1 ? Promise.resolve(allow({ input })) : next();
  });
  const ran = await outcome([moving], [weather(({ city }) => city)]);
  assertEquals(ran, `ok ${Object(seen[1]).city}`); // the guards decided about the input that runs
});

Deno.test("the reason of a deny that is no text does not keep the call from being denied", async () => {
  for (const reason of [undefined, null, 7, {}, ["no"], () => "no"]) {
    const odd = guard("odd", () => Promise.resolve({ type: "deny", reason } as unknown as Approval));
    assertEquals(await outcome([blind, odd]), "denied It is not allowed.");
  }
});

Deno.test("a guard cannot change the decision of an inner guard by writing to it", async () => {
  const writes = guard("writes", async (_, next) => {
    const below = await next();
    Reflect.set(below, "type", "allow");
    if (below.type === "ask") Reflect.set(below.questions, 0, "Nothing?");
    return below;
  });
  assertEquals([await outcome([writes, denies]), await outcome([writes, asks])], ["denied no", asked]);
  assertEquals(await outcome([writes, asks, asks]), "paused: Sure?, Sure?");
  assertEquals(await outcome([writes], [drop()], "drop"), "paused: Run drop?");
});

Deno.test("a pause at stop without a question fails the run", async () => {
  const wrong: Middleware = { stop: () => Promise.resolve({ type: "pause" } as never) }; // as without types
  const { status, error } = await agent({ model: scripted("Hi"), use: [wrong] }).run("Hi").result;
  assertEquals([status, String(error)], ["failed", "TypeError: Cannot pause: expected a question as text"]);
});

Deno.test("a guard that failed is not called again", async () => {
  let asked = 0;
  const flaky = guard("flaky", (_, next) => {
    if (++asked === 1) throw new Error("flaky");
    return next();
  });
  assertEquals(await outcome([swallows, flaky]), "denied A guard failed.");
  assertEquals(asked, 1);
});

Deno.test("a guard may pause the run: no call runs, and on resume the call passes its hooks again", async () => {
  const log: string[] = [];
  let open = false;
  const closed = guard("closed", (ctx, next) => {
    if (!open) throw ctx.run.pause("May we?");
    return next();
  });
  const started = batch(three, { tools: [weather(({ city }) => log.push(city))], use: [swallows, closed] });
  const { result } = await started.run().outcome;
  assertEquals([result.status, log], ["done", []]); // a hook that catches the pause has denied the call
  const strict = batch(three, { tools: [weather(({ city }) => log.push(city))], use: [blind, closed] });
  const first = await strict.run().outcome;
  assertEquals([withoutSchemas(first.result.questions), log], [[{ questions: ["May we?"] }], []]);
  open = true;
  const second = await strict.resume(first.result.session).outcome;
  assertEquals([second.lines.at(-1), log], ["assistant Done.", ["a", "b", "c"]]);
});

Deno.test("a guard that sees a question may allow it, although a guard in between ignores it", async () => {
  assertEquals(await outcome([sees, blind, asks]), "ok ran");
  assertEquals(await outcome([blind, sees, asks]), "ok ran");
  assertEquals(await outcome([asks, blind, sees, asks]), asked);
});

Deno.test("several asks are collected into one question, the tool's own too", async () => {
  const also = guard("also", () => Promise.resolve(ask("Really?")));
  assertEquals(await outcome([asks, blind, also], [drop()], "drop"), "paused: Sure?, Really?, Run drop?");
});

Deno.test("a tool asks always, for some inputs, or never", async () => {
  const picky = tool({
    name: "picky",
    description: "Asks for some",
    input: z.object({ city: z.string().transform((city) => city.toUpperCase()) }),
    ask: ({ city }) => Promise.resolve(city === "B"),
    execute: ({ city }) => city,
  });
  const { result } = await runBatch([call("a", { name: "picky" }), call("b", { name: "picky" })], { tools: [picky] });
  assertEquals(withoutSchemas(result.questions), [{
    callId: "b",
    tool: "picky",
    input: { city: "B" },
    questions: ["Run picky?"],
  }]);
});

Deno.test("a tool asks unless its ask function returns false, also for values that types forbid", async () => {
  for (const value of [undefined, null, 0, "", {}, true]) {
    const pay = tool({
      name: "pay",
      description: "Pays",
      input: z.object({ city: z.string() }),
      ask: () => value as never, // as code without types returns it
      execute: () => "paid",
    });
    assertEquals(await outcome([], [pay], "pay"), "paused: Run pay?");
  }
});

Deno.test("a tool whose ask function throws is denied", async () => {
  const nervous = tool({
    name: "nervous",
    description: "Breaks when it is asked",
    input: z.object({ city: z.string() }),
    ask: () => Promise.reject(new Error("the question broke")),
    execute: () => "ran",
  });
  assertEquals(await outcome([blind], [nervous], "nervous"), "denied A guard failed.");
});

Deno.test("the failure of a guard is reported to the operator, and clients receive a warning", async () => {
  const { errors, events } = await runBatch([call("a"), call("b")], { use: [at("a", { approval: broken.approval })] });
  assertEquals(errors.map(String), ["Error: the guard broke"]);
  const warnings = events.flatMap((event) => event.type === "warning" ? [{ ...event, error: "an id" }] : []);
  assertEquals(warnings, [{
    type: "warning",
    code: "hook.failed",
    message: "A guard failed, so the call was denied.",
    point: "approval",
    error: "an id",
  }]);
  const decided = events.flatMap((event) => event.type === "approval.decided" ? [event] : []);
  assertEquals(decided, [
    { type: "approval.decided", turn: 1, call: "a", decision: "deny", by: "policy", reason: "A guard failed." },
    { type: "approval.decided", turn: 1, call: "b", decision: "allow", by: "policy" },
  ]);
});

Deno.test("a guard with an invalid answer, or without await next(), denies the call", async () => {
  const odd = { decision: "approve" } as never; // a guard written in JavaScript may return this
  assertEquals(await outcome([guard("odd", () => Promise.resolve(odd))]), "denied A guard failed.");
  assertEquals(await outcome([guard("none", () => Promise.resolve(undefined as never))]), "denied A guard failed.");
  assertEquals(await outcome([guard("null", () => Promise.resolve(null as never))]), "denied A guard failed.");
  const hasty = guard("hasty", (_, next) => {
    next();
    return Promise.resolve(allow());
  });
  assertEquals(await outcome([hasty, denies]), "denied A guard failed.");
});

Deno.test("a guard sees the final input, once for each call, in the model's order", async () => {
  const seen: string[] = [];
  const look = guard("look", (ctx, next) => {
    seen.push(`${ctx.call.id} ${ctx.name} ${ctx.tool?.name} ${JSON.stringify(ctx.input)} ${ctx.turn}`);
    return next();
  });
  const change: Middleware = {
    name: "change",
    tool: (ctx, next) => next(ctx.call.id === "b" ? { input: { city: "oslo" } } : {}),
  };
  await runBatch(three, { use: [look, change] });
  assertEquals(seen, [
    'a weather weather {"city":"a"} 1',
    'b weather weather {"city":"oslo"} 1',
    'c weather weather {"city":"c"} 1',
  ]);
});

// ── answers that nothing was run for ──

Deno.test("guards also decide about an answer in place of the tool", async () => {
  const seen: string[] = [];
  const cache = at("a", { tool: () => Promise.resolve(text("cached")) });
  const look = guard("look", async (ctx, next) => {
    seen.push(`${ctx.call.id} ${ctx.proposed ? "answered" : "to run"}`);
    return await next();
  });
  const { lines } = await runBatch(three, { use: [cache, look, at("a", { approval: denies.approval })] });
  assertEquals(seen, ["a answered", "b to run", "c to run"]);
  assertEquals(lines.slice(1), ["denied no", "ok sun in b", "ok sun in c", "assistant Done."]);
});

Deno.test("guards do not see a call that was denied at tool, and its decision is deny", async () => {
  const seen: string[] = [];
  const look = guard("look", (ctx, next) => {
    seen.push(ctx.call.id);
    return next();
  });
  const { events } = await runBatch([call("a"), call("b")], {
    use: [at("a", { tool: () => Promise.resolve(denied("no")) }), look],
  });
  assertEquals(seen, ["b"]);
  const decided = events.flatMap((event) =>
    event.type === "approval.decided" ? [`${event.call} ${event.decision}`] : []
  );
  assertEquals(decided, ["a deny", "b allow"]);
});

Deno.test("a tool with an ask function asks about an answer to an invalid input", async () => {
  const picky = tool({
    name: "picky",
    description: "Asks for some",
    input: z.object({ city: z.string() }),
    ask: ({ city }) => city === "never",
    execute: () => "ran",
  });
  const cache: Middleware = { name: "cache", tool: () => Promise.resolve(text("cached")) };
  const { result } = await runBatch([call("a", { name: "picky", city: 7 }), call("b", { name: "picky" })], {
    tools: [picky],
    use: [cache],
  });
  assertEquals(result.questions.map(({ callId }) => callId), ["a"]);
});

Deno.test("guards also decide about an answer made from a guard's failure", async () => {
  const rescue: Middleware = {
    name: "rescue",
    async tool(_, next) {
      try {
        return await next();
      } catch {
        return text("made up");
      }
    },
  };
  const breaks: Middleware = { name: "breaks", tool: () => Promise.reject(new Error("boom")) };
  assertEquals(await outcome([rescue, breaks, denies]), "denied no");
  assertEquals(await outcome([rescue, breaks]), "ok made up");
});

Deno.test("an answer in place of the tool that a person approves is the result", async () => {
  const cache: Middleware = { name: "cache", tool: () => Promise.resolve(text("cached")) };
  const started = batch([call("a")], { use: [cache, asks] });
  const { result } = await started.run().outcome;
  assertEquals(withoutSchemas(result.questions), [{
    callId: "a",
    tool: "weather",
    input: { city: "a" },
    questions: ["Sure?"],
  }]);
  const { lines } = await started.resume(result.session, [{ callId: "a", type: "approve" }]).outcome;
  assertEquals(lines, ["call weather", "ok cached", "assistant Done."]);
});

Deno.test("a deny is final: no hook on the way out changes it to success", async () => {
  const rosy: Middleware = {
    name: "rosy",
    async tool(_, next) {
      const result = await next();
      return { ...result, status: "ok" };
    },
  };
  const nice: Middleware = {
    name: "nice",
    async tool(_, next) {
      await next();
      return text("All is well.");
    },
  };
  assertEquals(await outcome([rosy, denies]), "denied no");
  assertEquals(await outcome([nice, denies]), "denied All is well.");
});

// ── edits ──

const toRome = guard("toRome", (_, next) => next().then(() => allow({ input: { city: "rome" } })));
const noRome = guard("noRome", async ({ input }, next) => {
  return JSON.stringify(input).includes("rome") ? deny("no rome") : await next();
});

Deno.test("an edited input passes the guards once more, and then runs", async () => {
  const seen: unknown[] = [];
  const look = guard("look", (ctx, next) => {
    seen.push(ctx.input);
    return next();
  });
  const { lines, result } = await runBatch([call("a")], { use: [look, toRome] });
  assertEquals(seen, [{ city: "a" }, { city: "rome" }]);
  assertEquals(lines, ["call weather", "ok sun in rome", "assistant Done."]);
  assertEquals(result.messages[1], {
    role: "assistant",
    parts: [{ type: "call", id: "a", name: "weather", input: { city: "a" } }],
  });
});

Deno.test("an edited input cannot bypass a guard, wherever the guard is", async () => {
  assertEquals(await outcome([toRome, noRome]), "denied no rome");
  assertEquals(await outcome([noRome, toRome]), "denied no rome");
  assertEquals(await outcome([blind, toRome, noRome]), "denied no rome");
});

Deno.test("an edited input that the schema rejects is an error for the model", async () => {
  const wrong = guard("wrong", () => Promise.resolve(allow({ input: { city: 7 } })));
  assertEquals(
    await outcome([wrong]),
    "error The input of weather is not valid: city: Invalid input: expected string, received number",
  );
});

Deno.test("a call is denied if its guards keep changing the input", async () => {
  let n = 0;
  const restless = guard("restless", () => Promise.resolve(allow({ input: { city: `city ${++n}` } })));
  assertEquals(await outcome([restless]), "denied The input was changed too often.");
  assertEquals(n, 4);
});

Deno.test("an edit survives an outer guard that allows and an inner guard that asks", async () => {
  const rome = (input: unknown) => JSON.stringify(input) === '{"city":"rome"}';
  const edits = guard(
    "edits",
    ({ input }) => Promise.resolve(rome(input) ? allow() : allow({ input: { city: "rome" } })),
  );
  const look = weather(({ city }) => city);
  for (const use of [[blind, edits], [edits, blind], [insists, edits], [blind, insists, edits]]) {
    assertEquals(await outcome(use, [look]), "ok rome");
  }
  for (const use of [[edits, asks], [asks, edits], [blind, edits, asks], [blind, asks, edits]]) {
    const { result } = await runBatch([call("a")], { tools: [look], use });
    assertEquals(withoutSchemas(result.questions), [{
      callId: "a",
      tool: "weather",
      input: { city: "rome" },
      questions: ["Sure?"],
    }]);
  }
});

Deno.test("another order of keys is not an edit", async () => {
  const seen: unknown[] = [];
  const two = tool({
    name: "two",
    description: "Takes two",
    input: z.object({ a: z.number(), b: z.object({ c: z.number(), d: z.number() }) }),
    execute: () => "ran",
  });
  const turned = guard("turned", ({ input }) => {
    seen.push(input);
    return Promise.resolve(allow({ input: { b: { d: 3, c: 2 }, a: 1 } }));
  });
  const { lines } = await runBatch([{ id: "x", name: "two", input: { a: 1, b: { c: 2, d: 3 } } }], {
    tools: [two],
    use: [turned],
  });
  assertEquals([lines[1], seen.length], ["ok ran", 1]);
});

// ── a person ──

Deno.test("the denial of a person has their reason, or a default", async () => {
  for (
    const [reason, expected] of [[undefined, "denied A person said no."], [
      "not today",
      "denied A person said no: not today",
    ]] as const
  ) {
    const log: string[] = [];
    const started = batch([call("a", { name: "drop" })], { tools: [drop(log)] });
    const { result } = await started.run().outcome;
    const answer = { callId: "a", type: "deny", ...(reason && { reason }) } as const;
    const { lines, events } = await started.resume(result.session, [answer]).outcome;
    assertEquals([lines[1], log], [expected, []]);
    const decided = events.flatMap((event) => event.type === "approval.decided" ? [event] : []);
    assertEquals(decided.map(({ decision, by }) => [decision, by]), [["deny", "person"]]);
  }
});

Deno.test("the denial and the edit of a person count even if no guard asks now", async () => {
  for (
    const [answer, expected] of [
      [{ callId: "a", type: "deny" }, "denied A person said no."],
      [{ callId: "a", type: "approve", input: { city: "b" } }, "ok ran"],
    ] as const
  ) {
    let asking = true;
    const log: string[] = [];
    const once = guard("once", async (_, next) => asking ? ask("Sure?") : await next());
    const noted = weather(({ city }) => {
      log.push(city);
      return "ran";
    });
    const started = batch([call("a")], { tools: [noted], use: [once] });
    const { result } = await started.run().outcome;
    asking = false;
    const { lines } = await started.resume(result.session, [answer]).outcome;
    assertEquals([lines[1], log], [expected, answer.type === "deny" ? [] : ["b"]]);
  }
});

Deno.test("approval.asked contains the input that would run, and approval.decided says who decided", async () => {
  const started = batch([call("a", { name: "drop" })], { tools: [drop()], use: [asks] });
  const first = await started.run().outcome;
  const question = { callId: "a", tool: "drop", input: { city: "a" }, questions: ["Sure?", "Run drop?"] };
  assertEquals(first.events.filter(({ type }) => type === "approval.asked"), [
    { type: "approval.asked", turn: 1, call: "a", ...question },
  ]);
  assertEquals(withoutSchemas(first.result.questions), [question]);
  const second = await started.resume(first.result.session, [{ callId: "a", type: "approve" }]).outcome;
  assertEquals(second.events.filter(({ type }) => type.startsWith("approval")), [
    { type: "approval.decided", turn: 1, call: "a", decision: "allow", by: "person" },
  ]);
});

Deno.test("guards decide again when a run is resumed: a deny overrides the approval of a person", async () => {
  const seen: string[] = [];
  const strict = guard("strict", async ({ run }, next) => {
    seen.push(String(run.used.turns));
    return seen.length > 1 ? deny("no longer") : await next();
  });
  const log: string[] = [];
  const started = batch([call("a", { name: "drop" })], { tools: [drop(log)], use: [strict] });
  const { result } = await started.run().outcome;
  const { lines } = await started.resume(result.session, [{ callId: "a", type: "approve" }]).outcome;
  assertEquals([lines[1], log], ["denied no longer", []]);
});

Deno.test("an approval is for the input in the question: a changed input asks again", async () => {
  const log: string[] = [];
  let city = "a";
  const moving: Middleware = { name: "moving", tool: (_, next) => next({ input: { city } }) };
  const started = batch([call("a", { name: "drop" })], { tools: [drop(log)], use: [moving] });
  const first = await started.run().outcome;
  city = "b";
  const second = await started.resume(first.result.session, [{ callId: "a", type: "approve" }]).outcome;
  assertEquals(second.result.status, "paused");
  assertEquals(withoutSchemas(second.result.questions), [{
    callId: "a",
    tool: "drop",
    input: { city: "b" },
    questions: ["Run drop?"],
  }]);
  assertEquals(log, []);
  const third = await started.resume(first.result.session, [{ callId: "a", type: "approve" }]).outcome;
  assertEquals([third.lines[1], log], ["ok dropped b", ["drop b"]]);
});

Deno.test("an approval is for the tool in the question, even if another tool has the same input", async () => {
  const log: string[] = [];
  let name = "drop";
  const moving: Middleware = { name: "moving", tool: (_, next) => next({ name }) };
  const worse = weather(({ city }) => log.push(`destroy ${city}`), { name: "destroy", ask: true });
  const started = batch([call("a")], { tools: [weather(), drop(log), worse], use: [moving] });
  const first = await started.run().outcome;
  name = "destroy";
  const second = await started.resume(first.result.session, [{ callId: "a", type: "approve" }]).outcome;
  assertEquals([second.result.status, second.result.questions[0]?.tool, log], ["paused", "destroy", []]);
});

Deno.test("an answer for a call without a question is refused, and the run stays paused", async () => {
  const log: string[] = [];
  const started = batch([call("a"), call("b", { name: "drop" })], { tools: [weather(), drop(log)] });
  const { result } = await started.run().outcome;
  for (const callId of ["a", "c", ""]) {
    const { result: refused } = await started.resume(result.session, [{ callId, type: "approve" }]).outcome;
    assertEquals([refused.status, String(refused.error)], [
      "failed",
      `SessionError: Cannot answer call ${callId}: it is not asked, or was answered before; expected an answer to call b`,
    ]);
  }
  const { lines } = await started.resume(result.session, [{ callId: "b", type: "approve" }]).outcome;
  assertEquals([lines[2], log], ["ok dropped b", ["drop b"]]);
});

Deno.test("an answer counts once", async () => {
  const started = batch([call("a", { name: "drop" })], { tools: [drop()] });
  const { result } = await started.run().outcome;
  await started.resume(result.session, [{ callId: "a", type: "approve" }]).outcome;
  const { result: repeated } = await started.resume(result.session, [{ callId: "a", type: "approve" }]).outcome;
  assertEquals(String(repeated.error), `SessionError: Cannot resume session "${result.session}": it is not paused`);
});

Deno.test("questions without an answer are asked again", async () => {
  const log: string[] = [];
  const calls = [call("a", { name: "drop" }), call("b", { name: "drop" }), call("c")];
  const started = batch(calls, { tools: [weather(), drop(log)] });
  const first = await started.run().outcome;
  assertEquals(first.result.questions.map(({ callId }) => callId), ["a", "b"]);
  const second = await started.resume(first.result.session, [{ callId: "b", type: "approve" }]).outcome;
  assertEquals(second.result.questions.map(({ callId }) => callId), ["a"]);
  assertEquals(log, ["drop b"]);
  const third = await started.resume(first.result.session, [{ callId: "a", type: "deny" }]).outcome;
  assertEquals(third.lines.slice(1), ["denied A person said no.", "ok dropped b", "ok sun in c", "assistant Done."]);
});

Deno.test("an input that a person edits passes the guards, and then runs", async () => {
  const seen: unknown[] = [];
  const look = guard("look", (ctx, next) => {
    seen.push(ctx.input);
    return next();
  });
  const started = batch([call("a", { name: "drop" })], { tools: [drop()], use: [look] });
  const { result } = await started.run().outcome;
  const answer = { callId: "a", type: "approve", input: { city: "oslo" } } as const;
  const { lines } = await started.resume(result.session, [answer]).outcome;
  const note = 'context A person changed the input of drop to {"city":"oslo"}.';
  assertEquals(lines, ["call drop", "ok dropped oslo", note, "assistant Done."]);
  assertEquals(seen, [{ city: "a" }, { city: "a" }, { city: "oslo" }]);
});

Deno.test("an input that a person edits cannot bypass a guard", async () => {
  const log: string[] = [];
  const started = batch([call("a", { name: "drop" })], { tools: [drop(log)], use: [noRome] });
  const { result } = await started.run().outcome;
  const answer = { callId: "a", type: "approve", input: { city: "rome" } } as const;
  const { lines } = await started.resume(result.session, [answer]).outcome;
  assertEquals([lines[1], log], ["denied no rome", []]);
});

Deno.test("an input that a person edits and the schema rejects is refused, and the person may answer again", async () => {
  const started = batch([call("a", { name: "drop" })], { tools: [drop()] });
  const { result: { session } } = await started.run().outcome;
  const edited = (city: unknown) =>
    started.resume(session, [{ callId: "a", type: "approve", input: { city } }]).outcome;
  const { status, error } = (await edited(7)).result;
  const message = "Cannot answer call a: its input is wrong: city: Invalid input: expected string, received number";
  assertEquals([status, `${error}`], ["failed", `SessionError: ${message}`]);
  assertEquals((await edited("oslo")).lines[1], "ok dropped oslo");
});

Deno.test("an accepted edit of a person does not block the run if the schema has changed since", async () => {
  const store = memory();
  const dropping = (input: Schema<unknown, { city: string | number }>) =>
    tool({ name: "drop", description: "Drops", input, ask: true, execute: ({ city }) => `dropped ${city}` });
  const calls = [["drop", { city: 1 }], ["drop", { city: 2 }]] as const;
  const before = agent({ model: scripted({ calls }), tools: [dropping(z.object({ city: z.number() }))] });
  await before.run({ prompt: "Go", session: "s", store }).result;
  const edit = { callId: "call_1", type: "approve", input: { city: 3 } } as const;
  assertEquals((await before.resume({ session: "s", store, answers: [edit] }).result).status, "paused");
  const since = agent({ model: scripted("Done."), tools: [dropping(z.object({ city: z.string() }))] });
  const answers = [{ callId: "call_2", type: "deny" }] as const;
  assertEquals((await since.resume({ session: "s", store, answers }).result).text, "Done.");
});

Deno.test("an edit of a person that a guard edits again asks again", async () => {
  const north = guard("north", async ({ input }, next): Promise<Approval> => {
    const below = await next();
    return JSON.stringify(input) === '{"city":"oslo"}' ? allow({ input: { city: "tromso" } }) : below;
  });
  const log: string[] = [];
  const started = batch([call("a", { name: "drop" })], { tools: [drop(log)], use: [north] });
  const { result } = await started.run().outcome;
  const answer = { callId: "a", type: "approve", input: { city: "oslo" } } as const;
  const second = await started.resume(result.session, [answer]).outcome;
  assertEquals(second.result.questions.map(({ input }) => input), [{ city: "tromso" }]);
  assertEquals(log, []);
});
