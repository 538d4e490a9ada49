import { assertEquals, assertRejects } from "@std/assert";
import {
  agent,
  allow,
  ask,
  deny,
  memory,
  type Middleware,
  type PersonAnswer,
  type Question,
  type RunResult,
  SessionError,
  state,
  text,
  textOf,
  tool,
} from "@jizai/jizai";
import { scripted, type ScriptedStep } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import { blueOrRed } from "../support/asking.ts";
import { withoutSchemas } from "../support/without_schemas.ts";
import { lines } from "../support/transcript_lines.ts";
import { asTool } from "@jizai/jizai/subagents";

const pay = tool({
  name: "pay",
  description: "Pays",
  input: z.object({ sum: z.number() }),
  ask: true,
  execute: ({ sum }) => `Paid ${sum}`,
});

/** A response of the model that pays these sums. */
const paying = (...sums: readonly number[]) => ({ calls: sums.map((sum) => ["pay", { sum }] as const) });

/** An agent whose session is stored, with functions that run and answer it. */
function assistant(steps: readonly (string | ScriptedStep)[], use: readonly Middleware[] = []) {
  const store = memory();
  const made = agent({ model: scripted(...steps), tools: [pay], use });
  const decided: string[] = [];
  const received = async (run: ReturnType<typeof made.run>) => {
    for await (const event of run.events) {
      if (event.type === "approval.decided") decided.push(`${event.decision} by ${event.by}`);
    }
    return await run.result;
  };
  return {
    decided,
    store,
    run: (prompt = "Pay") => received(made.run({ prompt, session: "s", store })),
    answer: (...answers: readonly PersonAnswer[]) => received(made.resume({ session: "s", answers, store })),
  };
}

/** Returns the results and the added messages since the last prompt. */
function since({ messages }: RunResult): string[] {
  const last = messages.findLastIndex((message) => message.role === "user" && message.from === undefined);
  return lines(messages.slice(last + 1)).filter((line) => !line.startsWith("call "));
}

Deno.test("a question contains the schema of its answers, and suggestions", async () => {
  const { run } = assistant([paying(5)]);
  const [question] = (await run()).questions;
  const input = pay.definition.schema;
  const always = { enum: ["tool", "input"] };
  assertEquals(question, {
    callId: "call_1",
    tool: "pay",
    input: { sum: 5 },
    questions: ["Run pay?"],
    schema: {
      oneOf: [
        { type: "object", properties: { type: { const: "approve" }, input, always }, required: ["type"] },
        { type: "object", properties: { type: { const: "deny" }, reason: { type: "string" } }, required: ["type"] },
        {
          type: "object",
          properties: { type: { const: "reply" }, text: { type: "string" } },
          required: ["type", "text"],
        },
      ],
    },
    suggestions: [{ type: "approve" }, { type: "approve", always: "tool" }, { type: "deny" }],
  });
});

Deno.test("ask() may set the schema and the suggestions of its answer", async () => {
  const schema = { type: "object" };
  const asking: Middleware = {
    approval: () => Promise.resolve(ask("Which?", { schema, suggestions: [{ type: "reply", text: "Cash" }] })),
  };
  const { run } = assistant([paying(5)], [asking]);
  const [question] = (await run()).questions;
  assertEquals([question?.questions, question?.schema, question?.suggestions], [
    ["Which?", "Run pay?"],
    schema,
    [{ type: "reply", text: "Cash" }],
  ]);
});

Deno.test("a reply replaces the tool, and is its result", async () => {
  const review: Middleware = {
    async tool(_, next) {
      const result = await next();
      return { ...result, ...text(`${textOf(result)}!`) };
    },
  };
  const { run, answer, decided } = assistant([paying(5, 6), "Done."], [review]);
  await run();
  const done = await answer({ callId: "call_1", type: "reply", text: "Paid it myself" }, {
    callId: "call_2",
    type: "approve",
  });
  assertEquals([decided, since(done)], [["allow by person", "allow by person"], [
    "ok Paid it myself!",
    "ok Paid 6!",
    "assistant Done.",
  ]]);
});

Deno.test("the model reads that a person edited the input", async () => {
  const { run, answer } = assistant([paying(5), "Done."]);
  await run();
  const done = await answer({ callId: "call_1", type: "approve", input: { sum: 4 } });
  assertEquals(since(done), [
    "ok Paid 4",
    `context A person changed the input of pay to {"sum":4}.`,
    "assistant Done.",
  ]);
});

Deno.test("an answer with always stops further questions in the session, about the tool or about the tool with that input", async () => {
  for (const [always, paid] of [["tool", ["done", "done"]], ["input", ["done", "paused"]]] as const) {
    const { run, answer, decided, store } = assistant([paying(5), "One.", paying(5), "Two.", paying(6), "Three."]);
    await run();
    await answer({ callId: "call_1", type: "approve", always });
    const after = [(await run()).status, (await run()).status];
    assertEquals([after, decided.slice(0, 2)], [paid, ["allow by person", "allow by rule"]]);
    const rule = { tool: "pay", ...(always === "input" && { input: { sum: 5 } }), askedBy: { key: "pay" } };
    assertEquals((await store.load("s"))?.rules, [rule]);
  }
});

Deno.test('always: "input" allows the edited input', async () => {
  const { run, answer } = assistant([paying(5), "One.", paying(4), "Two.", paying(5), "Three."]);
  await run();
  await answer({ callId: "call_1", type: "approve", input: { sum: 4 }, always: "input" });
  assertEquals([(await run()).status, (await run()).status], ["done", "paused"]);
});

Deno.test("a denial overrides an answer with always", async () => {
  const most: Middleware = {
    approval: async (ctx, next) => JSON.stringify(ctx.input) === `{"sum":6}` ? deny("Too much.") : await next(),
  };
  const { run, answer } = assistant([paying(5), "One.", paying(6), "Two."], [most]);
  await run();
  await answer({ callId: "call_1", type: "approve", always: "tool" });
  assertEquals(since(await run()), ["denied Too much.", "assistant Two."]);
});

Deno.test("a reply to the question of a run reaches the hook that asked, once", async () => {
  const seen: unknown[] = [];
  const asking: Middleware = {
    name: "asking",
    prompt: (ctx, next) => {
      seen.push(ctx.run.answers);
      const [reply] = ctx.run.answers;
      if (reply?.type !== "reply") {
        throw ctx.run.pause("Which city?", { suggestions: [{ type: "reply", text: "Oslo" }] });
      }
      return next({ context: [`The city is ${reply.text}.`] });
    },
  };
  const { run, answer } = assistant(["Sunny."], [asking]);
  const { questions } = await run("Weather?");
  assertEquals([withoutSchemas(questions), questions[0]?.suggestions, questions[0]?.schema?.required], [
    [{ questions: ["Which city?"] }],
    [{ type: "reply", text: "Oslo" }],
    ["type", "text"],
  ]);
  const { status, messages } = await answer({ type: "reply", text: "Oslo" });
  assertEquals([status, lines(messages)], ["done", ["user Weather?", "prompt The city is Oslo.", "assistant Sunny."]]);
  assertEquals(seen, [[], [{ type: "reply", text: "Oslo" }]]);
});

Deno.test("a reply answers one pause: a run that pauses again receives the next reply", async () => {
  const seen: unknown[] = [];
  const asking: Middleware = {
    name: "asking",
    turn: (ctx, next) => {
      seen.push(ctx.run.answers.map((answer) => answer.type === "reply" && answer.text));
      if (seen.length < 3) throw ctx.run.pause(`Question ${seen.length}?`);
      return next();
    },
  };
  const { run, answer } = assistant(["Done."], [asking]);
  await run();
  await answer({ type: "reply", text: "one" });
  const { status } = await answer({ type: "reply", text: "two" });
  assertEquals([status, seen], ["done", [[], ["one"], ["two"]]]);
});

/** An agent with a subagent that pays; if `deep`, with another agent in between. */
function family(deep: boolean, { use = [], ask = false, pauses = 0 }: {
  readonly use?: readonly Middleware[];
  readonly ask?: boolean;
  readonly pauses?: number;
} = {}) {
  const store = memory();
  const clerk = agent({
    name: "clerk",
    model: scripted(paying(5, 6), ...Array(pauses).fill(paying(7)), "Paid both."),
    tools: [pay],
    use,
  });
  const toolOf = (child: typeof clerk, name: string) => ({ ...asTool(child, { name, description: "Does it" }), ask });
  const office = agent({
    name: "office",
    model: scripted({ calls: [["clerk", { prompt: "Pay" }]] }, "Settled."),
    tools: [toolOf(clerk, "clerk")],
  });
  const [name, child] = deep ? ["office", office] : ["clerk", clerk];
  const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Seen" });
  const root = agent({
    name: "root",
    model: scripted({ calls: [[name, { prompt: "Pay" }], ["look", {}]] }, "Done."),
    tools: [toolOf(child, name), look],
  });
  const resume = async (answers: readonly PersonAnswer[]) => {
    await store.save({ ...JSON.parse(JSON.stringify(await store.load("s"))) }); // a copy, as another process loads it
    return await root.resume({ session: "s", answers, store }).result;
  };
  return { run: () => root.run({ prompt: "Go", session: "s", store }).result, resume, store };
}

/** Approves every question. */
const yes = (questions: readonly Question[]) =>
  questions.map(({ callId = "" }) => ({ callId, type: "approve" } as const));

Deno.test("questions of a subagent reach the root run with their path, after the sibling calls have run", async () => {
  const { run, resume } = family(false);
  const paused = await run();
  assertEquals([paused.status, withoutSchemas(paused.questions)], ["paused", [
    { callId: "call_1/call_1", path: ["clerk"], tool: "pay", input: { sum: 5 }, questions: ["Run pay?"] },
    { callId: "call_1/call_2", path: ["clerk"], tool: "pay", input: { sum: 6 }, questions: ["Run pay?"] },
  ]]);
  const done = await resume(yes(paused.questions));
  assertEquals([done.status, lines(done.messages)], ["done", [
    "user Go",
    "call clerk look",
    "ok Paid both.",
    "ok Seen",
    "assistant Done.",
  ]]);
  assertEquals(done.usage, { input: 4, output: 4 });
});

Deno.test("two subagents that ask at once each receive their own answers", async () => {
  const store = memory();
  const paid: number[] = [];
  const noting = tool({ ...pay, input: z.object({ sum: z.number() }), execute: ({ sum }) => void paid.push(sum) });
  const clerk = (sum: number) => agent({ model: scripted(paying(sum), `Paid ${sum}.`), tools: [noting] });
  const root = agent({
    model: scripted({ calls: [["first", { prompt: "Pay" }], ["second", { prompt: "Pay" }]] }, "Done."),
    tools: [asTool(clerk(5), { name: "first" }), asTool(clerk(6), { name: "second" })],
  });
  const paused = await root.run({ prompt: "Go", session: "s", store }).result;
  assertEquals(paused.questions.map(({ callId }) => callId), ["call_1/call_1", "call_2/call_1"]);
  const [first, second] = yes(paused.questions);
  const answers = [{ callId: second?.callId ?? "", type: "deny" } as const, ...first ? [first] : []];
  const { status, messages } = await root.resume({ session: "s", answers, store }).result;
  assertEquals([status, paid], ["done", [5]]);
  assertEquals(lines(messages).slice(2), ["ok Paid 5.", "ok Paid 6.", "assistant Done."]);
});

Deno.test("questions of nested subagents may be answered one at a time", async () => {
  const { run, resume } = family(true);
  const paused = await run();
  const asked = (result: RunResult) => result.questions.map(({ callId, path }) => [callId, ...path ?? []]);
  assertEquals(asked(paused), [
    ["call_1/call_1/call_1", "office", "clerk"],
    ["call_1/call_1/call_2", "office", "clerk"],
  ]);
  const second = await resume(yes(paused.questions.slice(1)));
  assertEquals(asked(second), [["call_1/call_1/call_1", "office", "clerk"]]);
  const done = await resume([{ callId: "call_1/call_1/call_1", type: "deny", reason: "No." }]);
  assertEquals([done.status, lines(done.messages)[2]], ["done", "ok Settled."]);
  assertEquals(done.usage, { input: 6, output: 6 });
});

Deno.test("an approved call of a subagent is not asked about again when the subagent asks", async () => {
  const { run, resume } = family(false, { ask: true });
  const first = await run();
  assertEquals(withoutSchemas(first.questions).map(({ callId, tool }) => [callId, tool]), [["call_1", "clerk"]]);
  const second = await resume(yes(first.questions));
  assertEquals(second.questions.map(({ callId }) => callId), ["call_1/call_1", "call_1/call_2"]);
  assertEquals((await resume(yes(second.questions))).status, "done");
});

Deno.test("an answer with always in a subagent applies to that subagent only", async () => {
  const { run, resume, store } = family(false, { pauses: 1 });
  const { questions } = await run();
  const [first, ...rest] = yes(questions);
  const done = await resume([...first ? [{ ...first, always: "tool" as const }] : [], ...rest]);
  assertEquals([done.status, (await store.load("s"))?.rules], ["done", [
    { tool: "pay", path: ["clerk"], askedBy: { key: "pay" } },
  ]]);
});

Deno.test("an answer with always in a subagent does not apply to another one of the same name", async () => {
  const done: string[] = [];
  const clerk = (name: string) => {
    const pay = tool({
      name: "pay",
      description: "",
      input: z.object({}),
      ask: true,
      execute: () => void done.push(name),
    });
    const model = scripted(...Array.from({ length: 4 }, () => [{ calls: [["pay", {}]] as const }, "Paid."]).flat());
    return asTool(agent({ model, tools: [pay] }), { name }); // both agents have the default name
  };
  const ask = (name: string) => ({ calls: [[name, { prompt: "Pay" }]] as const });
  const model = scripted(ask("first"), ask("second"), "Done.", ask("first"), "Done.");
  const parent = agent({ model, tools: [clerk("first"), clerk("second")] });
  const options = { session: "s", store: memory() };
  const asked = await parent.run({ ...options, prompt: "Go" }).result;
  assertEquals(asked.questions.map(({ path }) => path), [["first"]]);
  const always = yes(asked.questions).map((each) => ({ ...each, always: "tool" as const }));
  const other = await parent.resume({ ...options, answers: always }).result;
  assertEquals([other.status, done, other.questions.map(({ path }) => path)], ["paused", ["first"], [["second"]]]);
  assertEquals((await parent.resume({ ...options, answers: yes(other.questions) }).result).status, "done");
  const again = await parent.run({ ...options, prompt: "Again" }).result;
  assertEquals([again.status, done], ["done", ["first", "second", "first"]]);
});

Deno.test("the question of a subagent's run is answered through its parent", async () => {
  const asking: Middleware = {
    name: "asking",
    prompt: (ctx, next) => {
      if (ctx.resumed) return next(); // the prompt was accepted, with the reply
      const [reply] = ctx.run.answers;
      if (reply?.type !== "reply") throw ctx.run.pause("Which account?");
      return next({ context: [reply.text] });
    },
  };
  const { run, resume } = family(false, { use: [asking] });
  const paused = await run();
  assertEquals(withoutSchemas(paused.questions), [{
    callId: "call_1/",
    path: ["clerk"],
    questions: ["Which account?"],
  }]);
  const second = await resume([{ callId: "call_1/", type: "reply", text: "Mine" }]);
  assertEquals((await resume(yes(second.questions))).status, "done");
});

Deno.test("a subagent that asks again receives each answer once", async () => {
  const asked = state("asked", () => 0);
  const received: unknown[] = [];
  const asking: Middleware = {
    name: "asking",
    turn: (ctx, next) => {
      const n = asked.update(ctx, (n) => n + 1);
      received.push(ctx.run.answers.map((answer) => answer.type === "reply" && answer.text));
      if (n < 3) throw ctx.run.pause(`Question ${n}?`);
      return next();
    },
  };
  const { run, resume } = family(false, { use: [asking], pauses: 1 });
  await run();
  await resume([{ callId: "call_1/", type: "reply", text: "one" }]);
  const third = await resume([{ callId: "call_1/", type: "reply", text: "two" }]);
  assertEquals(received, [[], ["one"], ["two"]]);
  const fourth = await resume(yes(third.questions));
  assertEquals(withoutSchemas(fourth.questions).map(({ callId, input }) => [callId, input]), [["call_1/call_3", {
    sum: 7,
  }]]);
  assertEquals((await resume(yes(fourth.questions))).status, "done");
});

Deno.test("an open question of a subagent is asked again, even if others were answered", async () => {
  const asked = state("asked", () => 0);
  const asking: Middleware = {
    name: "asking",
    turn: (ctx, next) => {
      const [reply] = ctx.run.answers;
      if (reply) asked.update(ctx, (n) => n + 1);
      if (asked.get(ctx) < 2) throw ctx.run.pause(`Question ${asked.get(ctx) + 1}?`);
      return next();
    },
  };
  const { run, resume } = family(false, { use: [asking] });
  await run();
  const questions = async (answers: readonly PersonAnswer[]) =>
    (await resume(answers)).questions.flatMap(({ questions }) => questions);
  assertEquals(await questions([]), ["Question 1?"]);
  assertEquals(await questions([{ callId: "call_1/", type: "reply", text: "one" }]), ["Question 2?"]);
  assertEquals(await questions([]), ["Question 2?"]);
});

Deno.test("two answers about one call both count if its input changes in between", async () => {
  const steep: Middleware = {
    name: "steep",
    approval: async (ctx, next) =>
      JSON.stringify(ctx.input) === `{"sum":4}` ? allow({ input: { sum: 3 } }) : await next(),
  };
  const { run, answer } = assistant([paying(5), "Done."], [steep]);
  await run();
  const second = await answer({ callId: "call_1", type: "approve", input: { sum: 4 } });
  assertEquals(withoutSchemas(second.questions).map(({ input }) => input), [{ sum: 3 }]);
  const done = await answer({ callId: "call_1", type: "approve" });
  assertEquals([done.status, since(done)[0]], ["done", "ok Paid 3"]);
});

Deno.test("a paused subagent is cancelled if the conversation continues without an answer", async () => {
  const { run, store } = family(false);
  await run();
  const { messages } = await agent({ model: scripted("As you like.") }).run({
    prompt: "Never mind",
    session: "s",
    store,
  })
    .result;
  assertEquals(lines(messages).slice(2, 4), ["skipped The conversation went on without an answer.", "ok Seen"]);
});

Deno.test("an answer of an unknown type, or with an unknown scope, is invalid and leaves the run paused", async () => {
  const made = assistant([paying(1), "Done."]);
  await made.run();
  const message = (expected: string) => `Cannot answer call call_1: expected ${expected}`;
  const cases = [
    [{ callId: "call_1", type: "allow" }, message('type "approve", "deny" or "reply", got "allow"')],
    [{ callId: "call_1", type: "approve", always: "session" }, message('always "tool" or "input", got "session"')],
  ] as const;
  for (const [answer, expected] of cases) {
    const { status, reason, error } = await made.answer(answer as never); // the types do not allow this value
    assertEquals([status, reason, error instanceof SessionError && error.code], ["failed", "session", "invalid"]);
    assertEquals(error instanceof Error && error.message, expected);
  }
  assertEquals((await made.answer({ callId: "call_1", type: "approve" })).status, "done");
  assertEquals(made.decided, ["allow by person"]);
});

Deno.test("the questions of a pause map to their approvals without a default for the id of the call", async () => {
  const made = agent({ model: scripted(paying(1, 2), "Done."), tools: [pay] });
  const { session, questions } = await made.run("Pay").result;
  const { messages } = await made.resume({
    session,
    answers: questions.map((question) => ({ callId: question.callId, type: "approve" })),
  }).result;
  assertEquals(lines(messages).filter((line) => line.startsWith("ok")), ["ok Paid 1", "ok Paid 2"]);
});

Deno.test("a question about the run takes only a reply", async () => {
  const { run, answer } = assistant(["Blue it is."], [blueOrRed("stop")]);
  const { questions } = await run("Paint");
  for (const type of ["approve", "deny"] as const) {
    await assertRejects(
      async () => {
        const { error } = await answer(...questions.map(({ callId }) => ({ callId, type })));
        throw error;
      },
      SessionError,
      `Cannot answer the run: expected type "reply", got "${type}"`,
    );
  }
  assertEquals((await answer({ type: "reply", text: "Blue" })).status, "done");
});

for (const type of ["approve", "deny"] as const) {
  Deno.test(`resume() refuses "${type}" for the question of a subagent's run, and the reply that follows reaches the subagent`, async () => {
    const child = agent({
      name: "helper",
      description: "Helps",
      model: scripted("Blue it is."),
      use: [blueOrRed("stop")],
    });
    const model = scripted({ calls: [["helper", { prompt: "Paint" }]] }, "Done.");
    const boss = agent({ model, tools: [asTool(child)] });
    const { session, questions } = await boss.run("Go").result;
    const [{ callId } = {}] = questions;
    assertEquals([questions.length, callId], [1, "call_1/"]);
    const refused = await boss.resume({ session, answers: [{ callId, type }], onError: () => {} }).result;
    assertEquals(
      [refused.status, String(refused.error)],
      ["failed", `SessionError: Cannot answer call call_1/: expected type "reply", got "${type}"`],
    );
    const { status, messages } = await boss.resume({ session, answers: [{ callId, type: "reply", text: "Blue" }] })
      .result;
    assertEquals([status, lines(messages).filter((line) => line.startsWith("ok"))], ["done", ["ok Blue it is."]]);
  });
}

/** An agent that pays, and whose subagent wipes: both ask. The calls have these ids. */
function payAndWipe(ids: { readonly pay: string; readonly clerk: string; readonly wipe: string }) {
  const did: string[] = [];
  const asking = (name: string) =>
    tool({ name, description: "", input: z.object({}), ask: true, execute: () => void did.push(name) });
  const wiping = scripted({ calls: [{ id: ids.wipe, name: "wipe", input: {} }] }, "Wiped.");
  const clerk = asTool(agent({ name: "clerk", model: wiping, tools: [asking("wipe")] }), { name: "clerk" });
  const calls = [{ id: ids.clerk, name: "clerk", input: { prompt: "Go" } }, { id: ids.pay, name: "pay", input: {} }];
  return { did, root: agent({ model: scripted({ calls }, "Done."), tools: [asking("pay"), clerk] }) };
}

for (
  const ids of [
    { pay: "a/b", clerk: "a", wipe: "b" },
    { pay: "a/b/c", clerk: "a/b", wipe: "c" },
    { pay: "a/b/c", clerk: "a", wipe: "b/c" },
    { pay: "a_b", clerk: "a/b", wipe: "a/b" },
    { pay: "a/", clerk: "a", wipe: "" },
    { pay: "/", clerk: "", wipe: "" },
    { pay: "a~1b", clerk: "a", wipe: "1b" },
  ]
) {
  Deno.test(`an answer is for one call only, whatever the ids are: ${JSON.stringify(ids)}`, async () => {
    for (const [approved, denied] of [["pay", "wipe"], ["wipe", "pay"]] as const) {
      const { root, did } = payAndWipe(ids);
      const { session, questions } = await root.run("Go").result;
      assertEquals(new Set(questions.map(({ callId }) => callId)).size, 2);
      const answerTo = (name: string, type: "approve" | "deny") =>
        questions.flatMap(({ callId, tool }) => tool === name ? [{ callId, type }] : []);
      const open = await root.resume({ session, answers: answerTo(approved, "approve") }).result;
      assertEquals([did, open.questions.map(({ tool }) => tool)], [[approved], [denied]]);
      const { status } = await root.resume({ session, answers: answerTo(denied, "deny") }).result;
      assertEquals([status, did], ["done", [approved]]);
    }
  });
}

Deno.test("ids of calls with a / or without a character are replaced everywhere: in events, keys, messages and questions", async () => {
  const seen: unknown[] = [];
  const note = tool({
    name: "note",
    description: "",
    input: z.object({}),
    execute: (_, { callId }) => void seen.push(callId),
  });
  const calls = ["a/b", "a_b", "", "call"].map((id) => ({ id, name: "note", input: {} }));
  const run = agent({ model: scripted({ calls }, "Done."), tools: [note] }).run("Go");
  const events = await Array.fromAsync(run.events);
  const expected = ["a_b", "a_b_2", "call", "call_2"];
  const ready = events.flatMap((event) => event.type === "call.ready" ? [event.call.id] : []);
  const { messages } = await run.result;
  const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
  assertEquals([ready, seen, results.map(({ callId }) => callId)], [expected, expected, expected]);
});
