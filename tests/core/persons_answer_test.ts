import {
  agent,
  allow,
  type AnyTool,
  ask,
  deny,
  memory,
  type Middleware,
  type PersonAnswer,
  type Question,
  type RunResult,
  type Schema,
  tool,
  when,
} from "@jizai/jizai";
import { human } from "@jizai/jizai/middleware/human";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { scripted, type ScriptedStep } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import { assertEquals, assertStringIncludes } from "@std/assert";
import * as z from "zod";
import { recordingStore, storeWith } from "../support/recording_store.ts";
import { storedProgress } from "../support/stored_run.ts";
import { withoutSchemas } from "../support/without_schemas.ts";
import { lines } from "../support/transcript_lines.ts";

/** A tool that logs the inputs that it runs with. */
function logging(name: string, did: unknown[], options: { readonly ask?: boolean; readonly input?: Schema } = {}) {
  const { ask = false, input = z.object({ command: z.string() }) } = options;
  return tool({ name, description: "", input, ask, execute: (input) => void did.push(input) });
}

/** A guard with one hook. */
function guard(name: string, approval: NonNullable<Middleware["approval"]>): Middleware {
  return { name, approval };
}

/** A guard that asks about the commands that begin with a word. */
function asksAbout(name: string, word: string, question = `May ${word} run?`, key?: string): Middleware {
  return guard(name, (ctx, next) => {
    const { command = "" } = Object(ctx.input);
    return command.startsWith(word) ? Promise.resolve(ask(question, key === undefined ? {} : { key })) : next();
  });
}

/** The calls of a response, with or without ids. */
type Calls = NonNullable<ScriptedStep["calls"]>;

/** A conversation whose model makes one call in each prompt. */
function conversation(use: readonly Middleware[], calls: readonly Calls[number][], tools: readonly AnyTool[]) {
  const model = scripted(...calls.flatMap((call) => [{ calls: [call] }, "Done."]));
  const options = { session: "s", store: memory(), onError: () => {} };
  const make = (use: readonly Middleware[]) => agent({ model, tools, use });
  return {
    store: options.store,
    run: () => make(use).run({ ...options, prompt: "Go" }).result,
    answer: (answers: readonly PersonAnswer[], others = use) => make(others).resume({ ...options, answers }).result,
  };
}

type Conversation = ReturnType<typeof conversation>;

/** Approves every question. */
function approving(questions: readonly Question[], more: object = {}): PersonAnswer[] {
  return questions.map(({ callId }) => ({ callId, type: "approve", ...more }));
}

/** Runs a prompt and approves its questions always. Returns the texts of the questions. */
async function always({ run, answer }: Conversation, always: "tool" | "input" = "tool"): Promise<string[]> {
  const { questions } = await run();
  if (questions.length > 0) await answer(approving(questions, { always }));
  return textsOf(questions);
}

function textsOf(questions: readonly Question[]): string[] {
  return questions.flatMap(({ questions }) => questions);
}

const bash = (...commands: readonly string[]) => commands.map((command) => ["bash", { command }] as const);

// ── always ──

Deno.test('always: "tool" answers the questions that were asked, and no others', async () => {
  const did: unknown[] = [];
  const use = [asksAbout("prod", "deploy", "May this deploy to production?")];
  const started = conversation(use, bash("ls", "ls -a", "deploy prod", "deploy prod"), [
    logging("bash", did, { ask: true }),
  ]);
  assertEquals(await always(started), ["Run bash?"]);
  assertEquals(await always(started), []);
  assertEquals(await always(started), ["May this deploy to production?"]); // only what is open
  assertEquals(await always(started), []);
  assertEquals(did.length, 4);
});

Deno.test("always binds to the middleware that asked, also if another one asks the same, and to its place among those of its name", async () => {
  for (const [first, second] of [["one", "two"], ["same", "same"]] as const) {
    const use = [asksAbout(first, "ls", "Sure?"), asksAbout(second, "rm", "Sure?")];
    const started = conversation(use, bash("ls", "ls", "rm", "rm"), [logging("bash", [])]);
    assertEquals([await always(started), await always(started)], [["Sure?"], []]);
    assertEquals([await always(started), await always(started)], [["Sure?"], []]);
  }
  const nameless = [{ approval: asksAbout("", "ls", "Sure?").approval }, { approval: asksAbout("", "rm").approval }];
  const started = conversation(nameless as Middleware[], bash("ls", "rm"), [logging("bash", [])]);
  assertEquals([await always(started), await always(started)], [["Sure?"], ["May rm run?"]]);
});

Deno.test("always binds to the key of a question, whose default is its text", async () => {
  let n = 0;
  const counting = (key?: string) =>
    guard("counting", () => Promise.resolve(ask(`Call ${++n}?`, key === undefined ? {} : { key })));
  const texts = conversation([counting()], bash("ls", "ls"), [logging("bash", [])]);
  assertEquals([(await always(texts)).length, (await always(texts)).length], [1, 1]);
  const keyed = conversation([counting("all")], bash("ls", "ls"), [logging("bash", [])]);
  assertEquals([(await always(keyed)).length, (await always(keyed)).length], [1, 0]);
  const one = asksAbout("keys", "ls", "Sure?", "list");
  const two = asksAbout("keys", "rm", "Sure?", "remove");
  const both = guard("keys", (ctx, next) => (one.approval ?? next)(ctx, () => (two.approval ?? next)(ctx, next)));
  const keys = conversation([both], bash("ls", "rm", "ls"), [logging("bash", [])]);
  assertEquals([await always(keys), await always(keys), await always(keys)], [["Sure?"], ["Sure?"], []]);
});

Deno.test("permissions() asks for each rule, whatever always was said about another one", async () => {
  const running = (words: string) => (input: unknown) => Object(input).command.startsWith(words);
  const rules = ["ls", "deploy", "rm"].map((word) => ({ tool: "bash", when: running(word) })); // same text, same source
  const started = conversation([permissions({ ask: rules })], bash("ls", "ls", "deploy", "rm", "deploy"), [
    logging("bash", []),
  ]);
  assertEquals([await always(started), await always(started)], [["May bash run?"], []]);
  assertEquals([await always(started), await always(started)], [["May bash run?"], ["May bash run?"]]);
  assertEquals(await always(started), []);
  const two = [permissions({ ask: [rules[0] ?? ""] }), permissions({ ask: [rules[1] ?? ""] })];
  const split = conversation(two, bash("ls", "deploy"), [logging("bash", [])]);
  assertEquals([await always(split), await always(split)], [["May bash run?"], ["May bash run?"]]);
});

Deno.test("a call runs only once all of its questions are answered, by answers and rules together", async () => {
  const did: unknown[] = [];
  const use = [asksAbout("one", "rm", "One?"), asksAbout("two", "rm -rf", "Two?")];
  const started = conversation(use, bash("rm a", "rm -rf b"), [logging("bash", did)]);
  assertEquals(await always(started), ["One?"]);
  const { questions } = await started.run();
  assertEquals([textsOf(questions), did.length], [["Two?"], 1]);
  const { status } = await started.answer(approving(questions));
  assertEquals([status, did.length], ["done", 2]);
});

Deno.test('always: "input" holds for its input and for the questions that were asked', async () => {
  const use = [asksAbout("prod", "ls -p", "On production?")];
  const calls = bash("ls", "ls", "ls -a", "ls -p");
  const started = conversation(use, calls, [logging("bash", [], { ask: true })]);
  assertEquals(await always(started, "input"), ["Run bash?"]);
  assertEquals([await always(started, "input"), await always(started, "input")], [[], ["Run bash?"]]);
  assertEquals(await always(started, "input"), ["On production?", "Run bash?"]);
});

Deno.test("a stored rule without its source asks again", async () => {
  for (const rule of [{ tool: "bash" }, { tool: "bash", input: { command: "ls" } }]) {
    const { run, store } = conversation([], bash("ls"), [logging("bash", [], { ask: true })]);
    await store.save({ id: "s", version: 0, messages: [], rules: [rule] });
    assertEquals((await run()).status, "paused");
  }
});

Deno.test("a hook that repeats the questions of inner guards leaves them to those guards; its own are its own", async () => {
  const adds = guard("adds", async (_, next) => {
    const below = await next();
    return below.type === "ask" ? { ...below, questions: ["Added?", ...below.questions] } : below;
  });
  const inner = asksAbout("inner", "rm", "Inner?");
  const started = conversation([adds, inner], bash("rm", "rm"), [logging("bash", [])]);
  assertEquals([await always(started), await always(started)], [["Added?", "Inner?"], []]);
  const without = conversation([inner], bash("rm"), [logging("bash", [])]);
  const { rules = [] } = await started.store.load("s") ?? {};
  await without.store.save({ id: "s", version: 0, messages: [], rules });
  assertEquals(await always(without), []);
});

// ── the form of the input ──

/** Returns the input of the question and the input that ran, after an approval. */
async function shownAndRun(input: Schema, given: unknown, more: object = {}) {
  const did: unknown[] = [];
  const started = conversation([], [["pay", given]], [logging("pay", did, { ask: true, input })]);
  const { questions } = await started.run();
  const { status } = await started.answer(approving(questions, more));
  return { status, shown: questions[0]?.input, ran: did };
}

let id = 0;
const shapes: readonly (readonly [what: string, schema: Schema, given: unknown, shown: unknown])[] = [
  ["an unknown field", z.object({ sum: z.number() }), { sum: 1, force: true }, { sum: 1 }],
  ["a coerced number", z.object({ sum: z.coerce.number() }), { sum: "1e3" }, { sum: 1000 }],
  ["a coerced boolean", z.object({ dry: z.coerce.boolean() }), { dry: "false" }, { dry: true }],
  ["a default", z.object({ sum: z.number().default(100) }), {}, { sum: 100 }],
  ["a transform", z.object({ to: z.string().trim().toLowerCase() }), { to: " ALL " }, { to: "all" }],
  ["another type", z.object({ ids: z.string().transform((ids) => ids.split(",")) }), { ids: "a,b" }, {
    ids: ["a", "b"],
  }],
  ["a caught error", z.object({ to: z.enum(["me"]).catch("me") }), { to: "all" }, { to: "me" }],
  ["an unknown field within", z.object({ at: z.object({ a: z.number() }) }), { at: { a: 1, b: 2 } }, { at: { a: 1 } }],
];

for (const [what, schema, given, shown] of shapes) {
  Deno.test(`a question shows the input that runs: ${what}`, async () => {
    const expected = { status: "done", shown, ran: [shown] };
    assertEquals(await shownAndRun(schema, given), expected);
    assertEquals(await shownAndRun(schema, given, { input: shown }), expected); // what was shown is no edit
    assertEquals(await shownAndRun(schema, given, { always: "input" }), expected);
  });
}

Deno.test("a question shows the JSON of a parsed input, and the model's input if it has none", async () => {
  const day = z.object({ day: z.string().transform((day) => new Date(day)) });
  const { shown, ran } = await shownAndRun(day, { day: "2026-01-02", more: 1 });
  assertEquals([shown, ran], [{ day: "2026-01-02T00:00:00.000Z" }, [{ day: new Date("2026-01-02") }]]);
  const set = z.object({ ids: z.array(z.string()).transform((ids) => new Set(ids)) });
  const odd = await shownAndRun(set, { ids: ["a"] });
  assertEquals([odd.shown, odd.ran], [{ ids: ["a"] }, [{ ids: new Set(["a"]) }]]);
});

Deno.test("a random default runs as the person saw it, also if several questions are answered one after another", async () => {
  const schema = z.object({ id: z.string().default(() => `id ${++id}`), at: z.date().or(z.string()).optional() });
  const { shown, ran, status } = await shownAndRun(schema.omit({ at: true }), {});
  assertEquals([status, ran], ["done", [shown]]);
  let late = false;
  const lateGuard = guard("late", (_, next) => late ? Promise.resolve(ask("Late?")) : next());
  const did: unknown[] = [];
  const input = schema.omit({ at: true });
  const started = conversation([lateGuard], [["pay", {}]], [logging("pay", did, { ask: true, input })]);
  const first = await started.run();
  late = true;
  const second = await started.answer(approving(first.questions));
  assertEquals([textsOf(second.questions), second.questions[0]?.input], [["Late?"], first.questions[0]?.input]);
  await started.answer(approving(second.questions));
  assertEquals(did, [first.questions[0]?.input]);
});

Deno.test("a schema that returns another value each time asks three more times, and then denies the call", async () => {
  const did: unknown[] = [];
  let parsed = 0;
  const input = z.object({ n: z.number() }).transform(() => ({ n: parsed++ }));
  const tools = [logging("pay", did, { ask: true, input })];
  const errors: unknown[] = [];
  const model = scripted({ calls: [["pay", { n: 1 }]] }, "Done.");
  const options = { session: "s", store: memory(), onError: (error: unknown) => void errors.push(error) };
  let result = await agent({ model, tools }).run({ ...options, prompt: "Go" }).result;
  let asked = 0;
  for (; result.status === "paused"; asked++) {
    const answers = result.questions.map(({ callId }) => ({ type: "approve", callId }) as const);
    result = await agent({ model, tools }).resume({ ...options, answers }).result;
  }
  assertEquals([asked, did, result.status], [4, [], "done"]);
  const why = "Its tool returns another input each time, so a person cannot approve it.";
  assertEquals(lines(result.messages).at(-2), `denied ${why}`);
  const complaint =
    'Cannot ask a person about "pay": its schema returns another value each time; expected the same one';
  assertEquals(errors.map(String), [`TypeError: ${complaint}`]);
});

Deno.test("a schema that returns another value each time asks again: nothing runs that was not shown", async () => {
  const schema = z.object({ n: z.number().transform(() => ++id) });
  const { status, ran } = await shownAndRun(schema, { n: 1 });
  assertEquals([status, ran], ["paused", []]);
});

Deno.test("permissions() and human() decide about the input that runs", async () => {
  const schema = z.object({ to: z.string().trim().toLowerCase() });
  const did: unknown[] = [];
  const seen: unknown[] = [];
  const denies = permissions({ deny: [{ tool: "pay", when: (input) => Object(input).to === "prod" }] });
  const person = human(({ input }) => {
    seen.push(input);
    return { allow: true, input };
  });
  const calls: Calls[number][] = [["pay", { to: " PROD " }], ["pay", { to: " TEST ", more: 1 }]];
  const { run } = conversation([denies, person], calls, [logging("pay", did, { ask: true, input: schema })]);
  assertEquals(lines((await run()).messages)[2], "denied pay is not permitted here.");
  await run();
  assertEquals([seen, did], [[{ to: "test" }], [{ to: "test" }]]);
});

// ── edits that hooks turn ──

const city = z.object({ city: z.string() });
/** A guard that asks about every call. */
const asks = guard("asks", () => Promise.resolve(ask("Sure?")));
/** Ways to put another city into each input. */
const pins = (to: (city: string) => string): readonly Middleware[] => [
  {
    name: "tool hook",
    tool: (ctx, next) => next({ input: { city: to(Object(ctx.input).city) } }),
  },
  guard("guard", (ctx, next) => {
    const { city } = Object(ctx.input);
    return to(city) === city ? next() : Promise.resolve(allow({ input: { city: to(city) } }));
  }),
];

for (const pin of pins(() => "rome")) {
  Deno.test(`an edit that a ${pin.name} turns back is asked about once more, with both forms`, async () => {
    for (const use of [[pin, asks], [asks, pin]]) {
      const did: unknown[] = [];
      const started = conversation(use, [["go", { city: "a" }]], [logging("go", did, { input: city })]);
      const first = await started.run();
      assertEquals(first.questions.map(({ input }) => input), [{ city: "rome" }]);
      const second = await started.answer(approving(first.questions, { input: { city: "paris" } }));
      assertEquals([second.status, did], ["paused", []]);
      assertEquals(withoutSchemas(second.questions), [{
        callId: "call_1",
        tool: "go",
        input: { city: "rome" },
        questions: ["Sure?", `A hook changed your input {"city":"paris"} to {"city":"rome"}.`],
      }]);
      const third = await started.answer(approving(second.questions));
      assertEquals([third.status, did, lines(third.messages).slice(2)], ["done", [{ city: "rome" }], [
        "ok",
        "assistant Done.",
      ]]);
    }
  });
}

for (const pin of pins((city) => city.toUpperCase())) {
  Deno.test(`an edit that a ${pin.name} turns into a third form is asked about with both forms, and an approval runs it`, async () => {
    const did: unknown[] = [];
    const started = conversation([pin, asks], [["go", { city: "a" }]], [logging("go", did, { input: city })]);
    const first = await started.run();
    const second = await started.answer(approving(first.questions, { input: { city: "b" } }));
    assertEquals([second.questions[0]?.input, did], [{ city: "B" }, []]);
    assertStringIncludes(textsOf(second.questions).join(), `your input {"city":"b"} to {"city":"B"}`);
    const third = await started.answer(approving(second.questions));
    assertEquals([third.status, did], ["done", [{ city: "B" }]]);
    assertEquals(lines(third.messages)[3], `context A person changed the input of go to {"city":"B"}.`);
  });
}

Deno.test("an edit that hooks turn back may be denied, edited again, or replied to", async () => {
  const [, pin = asks] = pins(() => "rome");
  const outcomes: readonly (readonly [answer: object, expected: RunResult["status"]])[] = [
    [{ type: "deny" }, "done"],
    [{ type: "reply", text: "Gone." }, "done"],
    [{ type: "approve", input: { city: "oslo" } }, "paused"],
  ];
  for (const [given, expected] of outcomes) {
    const did: unknown[] = [];
    const started = conversation([pin, asks], [["go", { city: "a" }]], [logging("go", did, { input: city })]);
    const first = await started.run();
    const second = await started.answer(approving(first.questions, { input: { city: "paris" } }));
    const { status, questions } = await started.answer(
      second.questions.map(({ callId }) => ({ callId, ...given } as PersonAnswer)),
    );
    assertEquals([status, did], [expected, []]);
    if (questions.length > 0) assertStringIncludes(textsOf(questions).join(), `your input {"city":"oslo"}`);
  }
});

Deno.test("guards and hooks that change a call before a person edits it do not use up the changes after the edit", async () => {
  const chain = (from: string, to: string) =>
    guard(
      `${from} to ${to}`,
      ({ input }, next) => Object(input).city === from ? Promise.resolve(allow({ input: { city: to } })) : next(),
    );
  const use = [chain("a", "b"), chain("b", "c"), chain("c", "d"), chain("x", "y"), chain("y", "d"), asks];
  const did: unknown[] = [];
  const started = conversation(use, [["go", { city: "a" }]], [logging("go", did, { input: city })]);
  const first = await started.run();
  assertEquals(first.questions.map(({ input }) => input), [{ city: "d" }]);
  const second = await started.answer(approving(first.questions, { input: { city: "x" } }));
  assertEquals([second.status, second.questions.map(({ input }) => input), did], ["paused", [{ city: "d" }], []]);
  assertEquals((await started.answer(approving(second.questions))).status, "done");
  assertEquals(did, [{ city: "d" }]);
});

Deno.test("a form that policy allows runs, also if a person's edit led to it", async () => {
  const once = guard("once", (ctx) => {
    const { city } = Object(ctx.input);
    return Promise.resolve(city === "a" ? ask("Sure?") : city === "b" ? allow({ input: { city: "c" } }) : allow());
  });
  const did: unknown[] = [];
  const started = conversation([once], [["go", { city: "a" }]], [logging("go", did, { input: city })]);
  const { questions } = await started.run();
  assertEquals((await started.answer(approving(questions, { input: { city: "b" } }))).status, "done");
  assertEquals(did, [{ city: "c" }]);
});

// ── guards on resume ──

/** A guard that decides like another one, and that fails while the service is down. */
function service(inner: NonNullable<Middleware["approval"]>, name = "service") {
  const state = { down: false, asked: 0 };
  const hook = guard(name, (ctx, next) => {
    state.asked++;
    if (state.down) throw new Error("The service is down");
    return inner(ctx, next);
  });
  return { state, hook };
}

type Approve = NonNullable<Middleware["approval"]>;
const decisions: { readonly [name: string]: Approve } = {
  asks: () => Promise.resolve(ask("Sure?")),
  allows: () => Promise.resolve(allow()),
  passes: (_, next) => next(),
  answers: async (_, next) => {
    const below = await next();
    return below.type === "ask" ? allow() : below;
  },
  replaces: async (_, next) => {
    await next();
    return ask("Instead?");
  },
  adds: async (_, next) => {
    const below = await next();
    return below.type === "ask" ? { ...below, questions: ["Added?", ...below.questions] } : below;
  },
};

for (const [what, decide] of Object.entries(decisions)) {
  Deno.test(`a guard that ${what}, and fails when the run is resumed, does not turn a yes into a denial`, async () => {
    for (const order of ["outside", "inside"]) {
      const did: unknown[] = [];
      const { state, hook } = service(decide);
      const use = order === "outside" ? [hook, asks] : [asks, hook];
      const started = conversation(use, bash("ls"), [logging("bash", did, { ask: true })]);
      const { questions, status } = await started.run();
      if (status === "done") continue; // it answered all questions
      state.down = true;
      const waiting = await started.answer([]); // the question stays
      assertEquals([waiting.status, textsOf(waiting.questions)], ["paused", textsOf(questions)]);
      const { status: end } = await started.answer(approving(questions));
      assertEquals([end, did.length], ["done", 1], `${order}: ${what}`);
    }
  });
}

Deno.test("a guard whose condition fails when the run is resumed keeps its decision, and denies if it had made none", async () => {
  for (const isAsync of [false, true]) {
    for (const applied of [true, false]) {
      let down = false;
      const did: unknown[] = [];
      const holds = () => {
        if (down) throw new Error("The service is down");
        return isAsync ? Promise.resolve(applied) : applied;
      };
      const started = conversation([asks, when(holds, guard("chosen", (_, next) => next()))], bash("ls"), [
        logging("bash", did),
      ]);
      const { questions } = await started.run();
      down = true;
      await started.answer(approving(questions));
      assertEquals(did.length, applied ? 1 : 0);
    }
  }
});

Deno.test("human() asks once more about an edit that a hook turns, with both forms", async () => {
  for (const pin of pins(() => "rome")) {
    const asked: (readonly string[])[] = [];
    const person = human(({ questions }) => {
      asked.push(questions);
      return asked.length > 1 || { allow: true, input: { city: "paris" } };
    });
    const did: unknown[] = [];
    const { run } = conversation([pin, person, asks], [["go", { city: "a" }]], [logging("go", did, { input: city })]);
    assertEquals((await run()).status, "done");
    assertEquals(asked, [["Sure?"], ["Sure?", `A hook changed your input {"city":"paris"} to {"city":"rome"}.`]]);
    assertEquals(did, [{ city: "rome" }]);
  }
});

Deno.test("a guard that fails when the run is resumed denies a changed input, and a call of a changed name", async () => {
  for (const more of [{ input: { command: "rm" } }, {}]) {
    const did: unknown[] = [];
    let command = "ls";
    const moving: Middleware = { name: "moving", tool: (_, next) => next({ input: { command } }) };
    const { state, hook } = service(decisions.passes ?? asks.approval as Approve);
    const use = "input" in more ? [hook, asks] : [moving, hook, asks];
    const started = conversation(use, bash("ls"), [logging("bash", did)]);
    const { questions } = await started.run();
    [state.down, command] = [true, "rm"];
    const { messages } = await started.answer(approving(questions, more));
    assertEquals([lines(messages)[2], did], ["denied A guard failed.", []]);
  }
});

Deno.test("guards that deny when the run is resumed deny, also inside a guard that fails", async () => {
  let strict = false;
  const denies = guard("denies", (_, next) => strict ? Promise.resolve(deny("no longer")) : next());
  for (const decide of Object.values(decisions)) {
    for (const swap of [false, true]) {
      strict = false;
      const did: unknown[] = [];
      const { state, hook } = service(decide);
      const use = swap ? [asks, denies, hook] : [asks, hook, denies];
      const started = conversation(use, bash("ls"), [logging("bash", did)]);
      const { questions } = await started.run();
      [state.down, strict] = [true, true];
      const { messages } = await started.answer(approving(questions));
      assertEquals([lines(messages)[2], did], ["denied no longer", []]);
    }
  }
});

Deno.test("a guard that was not there before the pause denies if it fails when the run is resumed", async () => {
  const did: unknown[] = [];
  const started = conversation([asks], bash("ls"), [logging("bash", did)]);
  const { questions } = await started.run();
  const { state, hook } = service(decisions.passes ?? asks.approval as Approve);
  state.down = true;
  const { messages } = await started.answer(approving(questions), [hook, asks]);
  assertEquals([lines(messages)[2], did], ["denied A guard failed.", []]);
});

Deno.test("a guard that fails after next() when the run is resumed does not have the inner guards asked again", async () => {
  let down = false;
  let inner = 0;
  const outer = guard("outer", async (_, next) => {
    const below = await next();
    if (down) throw new Error("The service is down");
    return below;
  });
  const counting = guard("counting", (_, next) => {
    inner++;
    return next();
  });
  const did: unknown[] = [];
  const started = conversation([outer, counting, asks], bash("ls"), [logging("bash", did)]);
  const { questions } = await started.run();
  [down, inner] = [true, 0];
  assertEquals([(await started.answer(approving(questions))).status, did.length, inner], ["done", 1, 1]);
});

Deno.test("a person's approval answers the questions that they were asked, and none of another key", async () => {
  for (const key of ["one", "two"]) {
    let now = "one";
    const did: unknown[] = [];
    const keyed = guard("keyed", () => Promise.resolve(ask("Sure?", { key: now })));
    const started = conversation([keyed], bash("ls"), [logging("bash", did)]);
    const { questions } = await started.run();
    now = key;
    const { status } = await started.answer(approving(questions));
    assertEquals([status, did.length], key === "one" ? ["done", 1] : ["paused", 0]);
  }
});

Deno.test("a guard that answers without a decision when the run is resumed denies", async () => {
  const did: unknown[] = [];
  let answer: unknown = ask("Sure?");
  const odd = guard("odd", () => Promise.resolve(answer as ReturnType<typeof ask>));
  const started = conversation([odd], bash("ls"), [logging("bash", did)]);
  const { questions } = await started.run();
  answer = { type: ["ask"] };
  const { messages } = await started.answer(approving(questions));
  assertEquals([lines(messages)[2], did], ["denied A guard failed.", []]);
});

Deno.test("a tool whose ask function fails when the run is resumed keeps its question", async () => {
  for (const asksItself of [true, false]) {
    let down = false;
    const did: unknown[] = [];
    const pay = tool({
      name: "pay",
      description: "",
      input: z.object({}),
      ask() {
        if (down) throw new Error("The service is down");
        return asksItself;
      },
      execute: () => void did.push("paid"),
    });
    const started = conversation([asks], [["pay", {}]], [pay]);
    const { questions } = await started.run();
    assertEquals(textsOf(questions), asksItself ? ["Sure?", "Run pay?"] : ["Sure?"]);
    down = true;
    assertEquals((await started.answer(approving(questions))).status, "done");
    assertEquals(did, ["paid"]);
  }
});

Deno.test("a guard that fails when the run is resumed keeps its yes to a subagent that asks", async () => {
  for (const decide of [decisions.passes, decisions.asks]) {
    const did: unknown[] = [];
    const { state, hook } = service(decide ?? asks.approval as Approve);
    const child = agent({
      name: "clerk",
      model: scripted({ calls: [["pay", {}]] }, "Paid."),
      tools: [
        logging("pay", did, { ask: true, input: z.object({}) }),
      ],
    });
    const started = conversation([hook], [["clerk", { prompt: "Pay" }]], [asTool(child)]);
    let result = await started.run();
    if (decide === decisions.asks) result = await started.answer(approving(result.questions));
    assertEquals(result.questions.map(({ tool }) => tool), ["pay"]);
    state.down = true;
    const { status } = await started.answer(approving(result.questions));
    assertEquals([status, did.length], ["done", 1]);
  }
});

/** A guard that pauses the run at its second call until it is open. */
function pausing() {
  const state = { open: false };
  const hook = guard("pausing", (ctx, next) => {
    if (!state.open && ctx.call.id === "call_2") throw ctx.run.pause("May we?");
    return next();
  });
  return { state, hook };
}

Deno.test("a guard whose question was held back by a pause of the run denies if it fails when the run is resumed", async () => {
  const did: unknown[] = [];
  const { state: pause, hook: closed } = pausing();
  const { state, hook } = service(decisions.asks ?? asks.approval as Approve);
  const model = scripted({ calls: bash("ls", "pwd") }, "Done.");
  const options = { session: "s", store: memory(), onError: () => {} };
  const made = agent({ model, tools: [logging("bash", did)], use: [closed, hook] });
  assertEquals(textsOf((await made.run({ ...options, prompt: "Go" }).result).questions), ["May we?"]);
  pause.open = true;
  state.down = true;
  const { status, messages } = await made.resume({ ...options, answers: [{ type: "reply", text: "Yes" }] }).result;
  assertEquals([status, lines(messages)[2], did], ["done", "denied A guard failed.", []]);
});

Deno.test("a question that a pause of the run holds back cannot be answered before it is asked", async () => {
  const did: unknown[] = [];
  const { state, hook } = pausing();
  const options = { session: "s", store: memory(), onError: () => {} };
  const model = scripted({ calls: bash("ls", "pwd") }, "Done.");
  const made = agent({ model, tools: [logging("bash", did)], use: [hook, asks] });
  await made.run({ ...options, prompt: "Go" }).result;
  state.open = true;
  const early = await made.resume({ ...options, answers: [{ type: "approve", callId: "call_1" }] }).result;
  assertEquals(
    String(early.error),
    "SessionError: Cannot answer call call_1: it is not asked, or was answered before; expected an answer to the run",
  );
  const { questions } = await made.resume({ ...options, answers: [{ type: "reply", text: "Yes" }] }).result;
  assertEquals([textsOf(questions), did], [["Sure?", "Sure?"], []]);
});

Deno.test("a guard that allowed a call before a hook paused the run keeps its decision if it fails when the run is resumed", async () => {
  const did: unknown[] = [];
  const { state, hook } = pausing();
  const { state: guarding, hook: allows } = service(decisions.passes ?? asks.approval as Approve);
  const options = { session: "s", store: memory(), onError: () => {} };
  const model = scripted({ calls: bash("ls", "pwd") }, "Done.");
  const made = agent({ model, tools: [logging("bash", did)], use: [hook, allows] });
  await made.run({ ...options, prompt: "Go" }).result;
  [state.open, guarding.down] = [true, true];
  await made.resume({ ...options, answers: [{ type: "reply", text: "Yes" }] }).result;
  assertEquals(did, [{ command: "ls" }]); // the guard had not decided about the other call
});

Deno.test("the model learns that a person changed an input, also if the process dies after the call has run", async () => {
  const did: unknown[] = [];
  const { store, saved } = recordingStore();
  const model = scripted({ calls: bash("ls") }, "Done.");
  const options = { session: "s", vars: undefined };
  const isSaved = () => saved.some((session) => storedProgress(session) === "tools ran");
  const held: Middleware = {
    name: "held",
    async tool(_, next) {
      const result = await next();
      while (!isSaved()) await new Promise((resolve) => setTimeout(resolve));
      return result;
    },
  };
  const made = agent({ model, tools: [logging("bash", did)], use: [held, asks] });
  const { questions } = await made.run({ ...options, store, prompt: "Go" }).result;
  await made.resume({ ...options, store, answers: approving(questions, { input: { command: "pwd" } }) }).result;
  const died = saved.findLast((session) => storedProgress(session) === "tools ran");
  const other = agent({ model: scripted("Done."), tools: [logging("bash", did)], use: [asks] });
  const left = await storeWith(died);
  const { messages } = await other.resume({ ...options, store: left.store, answers: [], lost: () => true }).result;
  assertEquals([did.length, lines(messages).slice(3)], [
    1,
    [`context A person changed the input of bash to {"command":"pwd"}.`, "assistant Done."],
  ]);
});

Deno.test("a guard that asks only when the run is resumed is answered before the call runs", async () => {
  let late = false;
  const did: unknown[] = [];
  const other = guard("other", (_, next) => late ? Promise.resolve(ask("At this hour?")) : next());
  const started = conversation([asks, other], bash("ls"), [logging("bash", did)]);
  const first = await started.run();
  late = true;
  const second = await started.answer(approving(first.questions));
  assertEquals([second.status, textsOf(second.questions), did], ["paused", ["At this hour?"], []]);
  const third = await started.answer(approving(second.questions));
  assertEquals([third.status, did.length], ["done", 1]);
});

Deno.test("a person's denial and reply count for the call, also if a hook gives it another input when the run is resumed", async () => {
  for (const given of [{ type: "deny" }, { type: "reply", text: "Done by hand." }] as const) {
    let command = "ls";
    const did: unknown[] = [];
    const moving: Middleware = { name: "moving", tool: (_, next) => next({ input: { command } }) };
    const started = conversation([moving, asksAbout("guard", "ls")], bash("ls"), [logging("bash", did)]);
    const { questions } = await started.run();
    command = "pwd"; // which no guard asks about
    const { status } = await started.answer(questions.map(({ callId }) => ({ callId, ...given })));
    assertEquals([status, did], ["done", []]);
  }
});

Deno.test("a question whose text changes with each decision is answered once", async () => {
  let n = 0;
  const counting = guard("counting", () => Promise.resolve(ask(`Call ${++n}?`)));
  const did: unknown[] = [];
  const started = conversation([counting], bash("ls"), [logging("bash", did)]);
  const { questions } = await started.run();
  assertEquals([(await started.answer(approving(questions))).status, did.length], ["done", 1]);
});
