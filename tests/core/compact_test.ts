import { assert, assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import type { CompactTrigger } from "@jizai/jizai/engine";
import {
  abortRun,
  type Agent,
  compacted,
  declined,
  memory,
  type Message,
  type Middleware,
  ModelError,
  reply,
  type RunHandle,
  type RunOptions,
  skip,
  textOf,
  tryAgain,
  user,
} from "@jizai/jizai";
import { compact } from "@jizai/jizai/middleware/compaction";
import { scripted, type ScriptedAnswer, type ScriptedModel } from "@jizai/jizai/model/scripted";
import { eventLines, eventsOfRun } from "../support/run_events.ts";
import { history, look, short } from "../support/long.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { compacting } from "../support/compacting.ts";

const tooLarge = new ModelError("The prompt is too long", { overflow: true });

/** The outcome of a compaction. */
interface Outcome {
  readonly status: string;
  /** The events of compactions, failures and model requests. */
  readonly events: readonly string[];
  /** The transcript. */
  readonly messages: readonly string[];
  /** The errors that the operator received. */
  readonly errors: readonly unknown[];
  readonly model: ScriptedModel;
}

/** A trigger of a compaction, and the model's behavior then. */
interface Trigger {
  readonly steps: readonly ScriptedAnswer[];
  readonly limits?: { readonly context: number };
  readonly begin: (assistant: Agent<unknown, unknown>, options: Options) => RunHandle<unknown>;
}

type Options = Required<Pick<RunOptions, "session" | "store" | "onError" | "signal">>;

const ask: Trigger["begin"] = (assistant, options) => assistant.run({ prompt: "Now", ...options });

const triggers: Readonly<Record<CompactTrigger, Trigger>> = {
  auto: { steps: ["Done."], limits: { context: 400 }, begin: ask },
  overflow: { steps: [{ error: tooLarge }, "Done."], begin: ask },
  manual: {
    steps: [],
    begin: (assistant, options) => compact(assistant, { instructions: "By hand.", ...options }),
  },
};

/** Runs a conversation of four hundred tokens into a compaction. */
async function play(
  trigger: CompactTrigger,
  use: readonly Middleware[] = [],
  signal = new AbortController().signal,
): Promise<Outcome> {
  const { steps, limits = {}, begin } = triggers[trigger];
  const model = scripted(...steps);
  const errors: unknown[] = [];
  const store = memory();
  await store.save({ id: "s", version: 0, messages: history });
  const onError = (error: unknown) => errors.push(error);
  const handle = begin(compacting({ model, use, limits }), { session: "s", store, onError, signal });
  const events = eventLines(await eventsOfRun(handle)).filter((line) => /^(compact|run|warning|model)/.test(line));
  const { status, messages } = await handle.result;
  return { status, events, messages: short(messages), errors, model };
}

const start = "run.started run s false";
const whole = ["user First", "assistant One", "user Second", "assistant Two"];

Deno.test("without a hook, every compaction drops the oldest messages", async () => {
  const auto = await play("auto");
  assertEquals(auto.events, [
    start,
    "compact.started auto",
    "compact.finished auto compacted 441 117",
    "model.started 1 scripted",
    "model.finished 1 stop 1",
    "run.finished done Done. stop",
  ]);
  assertEquals([auto.messages, auto.errors], [["user First", "user Now", "assistant Done."], []]);

  const overflow = await play("overflow");
  assertEquals(overflow.events, [
    start,
    "model.started 1 scripted",
    "compact.started overflow",
    "compact.finished overflow compacted 441 117",
    "model.finished 1 stop 2",
    "run.finished done Done. stop",
  ]);
  assertEquals([overflow.messages, overflow.errors], [["user First", "user Now", "assistant Done."], [tooLarge]]);

  const manual = await play("manual");
  assertEquals(manual.events, [
    start,
    "compact.started manual",
    "compact.finished manual compacted 434 326",
    "run.finished done ",
  ]);
  assertEquals([manual.messages, manual.errors], [["user First", "user Second", "assistant Two"], []]);
});

Deno.test("a compact hook receives the trigger, the transcript, the target size, the instructions and the model of the run", async () => {
  const seen: unknown[] = [];
  const mind: Middleware = {
    compact: ({ instructions }, next) => next({ instructions: `${instructions} Mind the names.`.trim() }),
  };
  const see: Middleware = {
    compact: ({ trigger, transcript, instructions, budget, model: { id } }, next) => {
      seen.push([trigger, short(transcript).length, instructions, budget, id]);
      return next();
    },
  };
  for (const trigger of ["auto", "overflow", "manual"] as const) await play(trigger, [mind, see]);
  assertEquals(seen, [
    ["auto", 5, "Mind the names.", 200, "scripted"],
    ["overflow", 5, "Mind the names.", 220, "scripted"],
    ["manual", 4, "By hand. Mind the names.", 217, "scripted"],
  ]);
});

for (const trigger of ["auto", "overflow", "manual"] as const) {
  const goesOn = trigger !== "manual";
  const end = goesOn ? ["assistant Done."] : [];
  const last = goesOn ? ["user Now"] : ["assistant Two"];
  const compactions = ({ events }: Outcome) => events.filter((line) => line.startsWith("compact.finished"));

  Deno.test(`${trigger}: a hook replaces the compaction`, async () => {
    const outcome = await play(trigger, [{
      compact: ({ transcript }) => Promise.resolve(compacted([user("All of it.", "hook"), ...transcript.slice(-1)])),
    }]);
    assertEquals([outcome.status, outcome.messages], ["done", ["hook All of it.", ...last, ...end]]);
    assert(compactions(outcome)[0]?.startsWith(`compact.finished ${trigger} compacted`));
  });

  Deno.test(`${trigger}: a hook declines`, async () => {
    const outcome = await play(trigger, [{ compact: () => Promise.resolve(declined("Not now.")) }]);
    const size = trigger === "manual" ? 434 : 441;
    assertEquals(compactions(outcome), [`compact.finished ${trigger} declined ${size} ${size} Not now.`]);
    assertEquals(outcome.status, { auto: "done", overflow: "failed", manual: "cancelled" }[trigger]);
    assertEquals(outcome.messages, [...whole, ...goesOn ? last : [], ...trigger === "auto" ? end : []]);
    assertEquals(outcome.errors, trigger === "overflow" ? [tooLarge] : []);
    assertEquals(
      outcome.events.at(-1),
      {
        auto: "run.finished done Done. stop",
        overflow: "run.failed uuid The run failed. context",
        manual: "run.finished cancelled  Not now.",
      }[trigger],
    );
  });

  Deno.test(`${trigger}: a hook adds to the compaction`, async () => {
    const outcome = await play(trigger, [{
      async compact(_, next) {
        const compaction = await next();
        if (compaction.type === "declined") return compaction;
        return compacted([...compaction.messages, user("Mind the names.", "adder")]);
      },
    }]);
    const trimmed = goesOn ? ["user First", "user Now"] : ["user First", "user Second", "assistant Two"];
    assertEquals([outcome.status, outcome.messages], ["done", [...trimmed, "adder Mind the names.", ...end]]);
  });

  Deno.test(`${trigger}: a hook that throws fails the compaction, and the run continues if it can`, async () => {
    const boom = new Error("boom");
    const outcome = await play(trigger, [{ compact: () => Promise.reject(boom) }]);
    const trimmed = "transcript.trimmed The compaction failed, so the oldest messages were left out. compact";
    if (trigger === "auto") {
      assertEquals([outcome.status, outcome.messages], ["done", [...whole, ...last, ...end]]);
      assertEquals(compactions(outcome), ["compact.finished auto failed 441 441"]);
    } else if (goesOn) {
      assertEquals([outcome.status, outcome.messages], ["done", ["user First", ...last, ...end]]);
      assertEquals(compactions(outcome), ["compact.finished overflow failed 441 117"]);
    } else {
      assertEquals([outcome.status, outcome.messages, compactions(outcome)], ["failed", whole, []]);
    }
    assertEquals(outcome.errors, trigger === "overflow" ? [boom, tooLarge] : [boom]);
    const warnings = outcome.events.filter((line) => line.startsWith("warning"));
    assertEquals(warnings, trigger === "overflow" ? [`warning ${trimmed}`] : []);
  });

  Deno.test(`${trigger}: a run that is stopped during the compaction keeps its transcript`, async () => {
    for (const late of [false, true]) {
      const controller = new AbortController();
      const outcome = await play(trigger, [{
        async compact({ signal }, next) {
          controller.abort();
          if (!late) signal.throwIfAborted();
          return await next();
        },
      }], controller.signal);
      assertEquals([outcome.status, outcome.messages], ["aborted", [...whole, ...goesOn ? last : []]]);
      assertEquals([compactions(outcome), outcome.events.at(-1)], [[], "run.aborted signal "]);
    }
  });

  Deno.test(`${trigger}: a run that a hook ends stops before or after the compaction`, async () => {
    for (const late of [false, true]) {
      const outcome = await play(trigger, [{
        async compact({ run }, next) {
          const end = run.end("enough");
          if (!late) throw end;
          return await next();
        },
      }]);
      assertEquals([outcome.status, outcome.events.at(-1)], ["cancelled", "run.finished cancelled  enough"]);
      assertEquals(compactions(outcome).length, late ? 1 : 0);
      assertEquals(outcome.messages.includes("assistant One"), !late);
    }
  });
}

Deno.test("a request that is too large again is handled as every other failure", async () => {
  const seen: unknown[] = [];
  const use: Middleware[] = [{
    error({ error, source, recoverable, attempt }, next) {
      seen.push([error, source, recoverable, attempt]);
      return next();
    },
  }];
  const model = scripted({ error: tooLarge }, { error: tooLarge }, "Never.");
  const errors: unknown[] = [];
  const run = compacting({ model, use }).run({
    messages: [...history, user("Now")],
    onError: (error) => errors.push(error),
  });
  const { status, error, messages } = await run.result;
  assertEquals([status, error, model.requests.length], ["failed", tooLarge, 2]);
  assertEquals(seen, [[tooLarge, "model", false, 1]]);
  assertEquals(errors, [tooLarge, tooLarge]);
  assertEquals(short(messages), ["user First", "user Now"]);
});

Deno.test("each request may be compacted once", async () => {
  const calls = { calls: [["look", { at: "a" }]] } as const;
  const model = scripted({ error: tooLarge }, calls, { error: tooLarge }, "Done.");
  const run = compacting({ model, tools: [look] }).run({ messages: [...history, user("Now")] });
  const events = await eventsOfRun(run);
  assertEquals(eventLines(events).filter((line) => /^(compact|turn.started)/.test(line)), [
    "turn.started 1",
    "compact.started overflow",
    "compact.finished overflow compacted 441 117",
    "turn.started 2",
    "compact.started overflow",
    "compact.finished overflow declined 186 186 There is nothing that could be left out.",
  ]);
  assertEquals((await run.result).status, "failed");
});

Deno.test("a model with a larger context is asked before the transcript is compacted", async () => {
  const other = scripted("Done.");
  const use: Middleware[] = [{
    model: (_, next) => next().catch(() => next({ request: { model: other } })),
  }];
  const run = compacting({ model: scripted({ error: tooLarge }), use }).run({ messages: [...history, user("Now")] });
  assertEquals(eventLines(await eventsOfRun(run)).filter((line) => line.startsWith("compact")), []);
});

Deno.test("a request that a provider refuses for another reason is not compacted", async () => {
  const model = scripted({ error: new ModelError("Bad key", { status: 401 }) });
  const run = compacting({ model }).run({ messages: [...history, user("Now")] });
  assertEquals(eventLines(await eventsOfRun(run)).filter((line) => line.startsWith("compact")), []);
});

Deno.test("Engine: additions of hooks to a request are made again after a compaction", async () => {
  const attempts: number[] = [];
  const use: Middleware[] = [{
    turn: (_, next) => next({ context: ["It is noon."] }),
    model: (ctx, next) => {
      attempts.push(ctx.attempt);
      return next({ request: { messages: [...ctx.request.messages, user(`Try ${ctx.attempt}`, "hook")] } });
    },
  }];
  const model = scripted({ error: tooLarge }, "Done.");
  await compacting({ model, use }).run({ messages: [...history, user("Now")] }).result;
  const added = (attempt: number) => ["user Now", "turn It is noon.", `hook Try ${attempt}`];
  assertEquals(model.requests.map(({ messages }) => short(messages)), [
    [...whole, ...added(1)],
    ["user First", ...added(2)],
  ]);
  assertEquals(attempts, [1, 2]);
});

Deno.test("deltas of a request that was too large are reset", async () => {
  const model = scripted({ text: "Half", error: tooLarge }, "Done.");
  const run = compacting({ model }).run({ messages: [...history, user("Now")] });
  assertEquals(eventLines(await eventsOfRun(run)).filter((line) => /^(text|model|compact.s)/.test(line)), [
    "model.started 1 scripted",
    "text.delta 1 0 Half",
    "compact.started overflow",
    "model.reset 1",
    "text.delta 1 0 Done.",
    "model.finished 1 stop 2",
  ]);
});

Deno.test("a turn hook may answer a request that stays too large", async () => {
  const use: Middleware[] = [{ turn: (_, next) => next().catch(() => ({ response: reply("Sorry."), results: [] })) }];
  const model = scripted({ error: tooLarge }, { error: tooLarge });
  const { status, messages } = await compacting({ model, use }).run({ messages: [...history, user("Now")] }).result;
  assertEquals([status, short(messages)], ["done", ["user First", "user Now", "assistant Sorry."]]);
});

Deno.test("an error hook decides about a failed compaction: continue without it, retry, or abort", async () => {
  using time = new FakeTime();
  const busy = new ModelError("Busy", { recoverable: true });
  const decide = async (trigger: CompactTrigger, decision: Middleware["error"] & object) => {
    const seen: unknown[] = [];
    let left = 2;
    const outcome = await advanceUntilSettled(
      time,
      play(trigger, [{
        error(ctx, next) {
          seen.push(`${ctx.source} ${ctx.recoverable} ${ctx.attempt}`);
          return decision(ctx, next);
        },
        compact: () => left-- > 0 ? Promise.reject(busy) : Promise.resolve(compacted([user("Less")])),
      }]),
    );
    return [seen, outcome.status, outcome.messages, outcome.errors];
  };
  const first = "compact true 1";
  const trimmed = ["user First", "user Now", "assistant Done."];
  const untouched = [...whole, "user Now", "assistant Done."];
  assertEquals(await decide("auto", () => Promise.resolve(skip())), [[first], "done", untouched, [busy]]);
  assertEquals(await decide("overflow", (_, next) => next()), [[first], "done", trimmed, [busy, tooLarge]]);
  assertEquals(await decide("auto", () => Promise.resolve(tryAgain({ after: 1_000 }))), [
    [first, "compact true 2"],
    "done",
    ["user Less", "assistant Done."],
    [busy, busy],
  ]);
  assertEquals(await decide("auto", () => Promise.resolve(abortRun())), [[first], "failed", [...whole, "user Now"], [
    busy,
  ]]);
  for (const decision of [skip(), tryAgain(), abortRun()]) { // the caller that requested the compaction receives the error again
    const outcome = [["compact false 1"], "failed", whole, [busy]];
    assertEquals(await decide("manual", () => Promise.resolve(decision)), outcome);
  }
});

Deno.test("the tokens of a compaction count in the usage of the run", async () => {
  const usage = { input: 100, output: 10 };
  const use: Middleware[] = [{ compact: () => Promise.resolve(compacted([user("Less")], { usage })) }];
  const { model } = await play("auto");
  assertEquals(model.requests.length, 1);
  const run = compacting({ model: scripted("Done."), use, limits: { context: 1 } }).run("Hi");
  assertEquals((await run.result).usage, { input: 101, output: 11 });
});

Deno.test("a compaction that separates a call from its result is repaired, and the warning names the middleware", async () => {
  const call = { type: "call", id: "a", name: "look", input: {} } as const;
  const use: Middleware[] = [{ name: "outer", compact: (_, next) => next() }, {
    name: "splitter",
    compact: () => Promise.resolve(compacted([user("Hi"), { role: "assistant", parts: [call] }])),
  }];
  const { events, messages } = await play("auto", use);
  assertEquals(messages, ["user Hi", "call look", "skipped There is no result.", "assistant Done."]);
  assertEquals(events.filter((line) => line.startsWith("warning")), [
    "warning transcript.repaired The messages were not valid: no result for call a compact splitter",
  ]);
});

Deno.test("the id of a dropped call is not reused", async () => {
  const calls = (at: string) => ({ calls: [{ id: "same", name: "look", input: { at } }] });
  const ids: string[] = [];
  const run = compacting({
    model: scripted(calls("a"), calls("b"), calls("c"), "Done."),
    tools: [look],
    use: [{ tool: ({ call }, next) => (ids.push(call.id), next()) }],
    limits: { context: 60 },
  }).run("Look");
  const { messages } = await run.result;
  assertEquals(short(messages), ["user Look", "call look", "ok Seen c", "assistant Done."]);
  assertEquals(ids, ["same", "same_2", "same_3"]);
});

Deno.test("without a limit, the transcript is not compacted", async () => {
  const never: Middleware = { compact: () => Promise.reject(new Error("never")) };
  const model = scripted("Hello!");
  const { status } = await compacting({ model, use: [never] }).run("x".repeat(1_000_000)).result;
  assertEquals(status, "done");
});

Deno.test("each message is measured once, however long the run", async () => {
  let measured = 0;
  const input = { toJSON: () => measured++ };
  const messages: readonly Message[] = [
    { role: "assistant", parts: [{ type: "call", id: "a", name: "look", input }] },
    { role: "tool", results: [{ callId: "a", name: "look", status: "ok", parts: [] }] },
    user("Go on"),
  ];
  const call = { calls: [["look", { at: "a" }]] } as const;
  const model = scripted(...Array.from({ length: 20 }, () => call), "Done.");
  await compacting({ model, tools: [look], limits: { context: 100_000 } }).run({ messages }).result;
  assertEquals([measured, model.requests.length], [1, 21]);
});

Deno.test("requests between two compactions only append, and all requests begin with the same messages", async () => {
  const call = { calls: [["look", { at: "a" }]] } as const;
  const model = scripted(...Array.from({ length: 100 }, () => call), "Done.");
  const run = compacting({ model, tools: [look], limits: { context: 1_000, turns: 101 } }).run("Look");
  const events = await eventsOfRun(run);
  let anew = 0;
  for (const [index, { messages }] of model.requests.entries()) {
    const before = JSON.stringify(model.requests[index - 1]?.messages ?? []).slice(0, -1);
    if (!JSON.stringify(messages).startsWith(before)) anew++;
    assertEquals(textOf({ parts: messages[0]?.role === "user" ? messages[0].parts : [] }), "Look");
  }
  assertEquals(anew, events.filter(({ type }) => type === "compact.finished").length);
  assert(anew <= 12, `compacted ${anew} times, of 65 tokens in each turn`);
});
