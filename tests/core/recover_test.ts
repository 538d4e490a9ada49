import { assert, assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import {
  agent,
  memory,
  type Middleware,
  type RunResult,
  type Session,
  SessionError,
  state,
  text,
  tool,
  user,
} from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import * as z from "zod";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { heldUntilSaved, recordingStore, storeWith } from "../support/recording_store.ts";
import { storedProgress } from "../support/stored_run.ts";
import { lines } from "../support/transcript_lines.ts";
import { saving } from "../support/saving.ts";

/** Creates tools that record their effects in `done`, by idempotency key. */
function tools(done: string[], after: (name: string) => Promise<void> | void = () => {}) {
  const make = (name: string, options: { idempotent?: boolean; ask?: boolean } = {}) =>
    tool({
      name,
      description: "Does",
      input: z.object({}),
      ...options,
      execute: async (_, { idempotencyKey }) => {
        done.push(`${name} ${idempotencyKey.split(":").at(-1)}`);
        await after(name);
        return `did ${name}`;
      },
    });
  return [make("read", { idempotent: true }), make("send"), make("pay", { ask: true })];
}

const calls = [["read", {}], ["send", {}]] as const;

/** Runs a prompt. A hook waits until the results of the calls are saved. Returns the result and all saves. */
async function record(hooks: readonly Middleware[] = []) {
  const { store, saved } = recordingStore();
  const model = scripted({ text: "I do.", calls }, "Done.");
  const use = [...hooks, heldUntilSaved(saved)];
  const whole = await agent({ model, tools: tools([]), use }).run({ prompt: "Go", session: "s", store }).result;
  return { whole, saved };
}

/** Continues a session in another process. */
async function continueRun(session: Session | undefined, { use = [], answers = [] }: {
  use?: readonly Middleware[];
  answers?: Parameters<ReturnType<typeof agent>["resume"]>[0]["answers"];
} = {}) {
  const done: string[] = [];
  const { store, saved } = await storeWith(session);
  const turns = session?.messages.some(({ role }) => role === "assistant") || session?.run?.position.at === "tools";
  const model = turns ? scripted("Done.") : scripted({ text: "I do.", calls }, "Done.");
  const run = agent({ model, tools: tools(done), use }).resume({ session: "s", store, answers, lost: () => true });
  const events = await Array.fromAsync(run.events);
  return { result: await run.result, events, done, saved };
}

const transcript = ["user Go", "assistant I do.", "call read send", "ok did read", "ok did send", "assistant Done."];

Deno.test("every save contains the position of the run", async () => {
  const { saved, whole } = await record();
  assertEquals(lines(whole.messages), transcript);
  const reported = saved.map(({ messages, run }) => {
    const { position } = run ?? {};
    return [
      messages.length,
      position?.at,
      position?.at === "prompt" ? lines(position.messages) : undefined,
      position?.at === "tools" ? position.calls.map(({ call, state }) => `${call.name} ${state}`) : undefined,
    ];
  });
  assertEquals(reported, [
    [0, "prompt", ["user Go"], undefined],
    [1, "model", undefined, undefined],
    [1, "tools", undefined, ["read running", "send running"]],
    [1, "tools", undefined, ["read ran", "send ran"]],
    [3, "model", undefined, undefined],
    [4, undefined, undefined, undefined],
  ]);
  assertEquals(saved.at(-1)?.last?.event.type, "run.finished");
});

Deno.test("calls are saved as running before they start, also beside a call that asks", async () => {
  for (const names of [["send", "pay"], ["pay", "send"]]) {
    const { store, saved } = recordingStore();
    const progress: unknown[] = [];
    const model = scripted({ calls: names.map((name) => [name, {}] as const) });
    const all = tools([], () => void progress.push(...saved.slice(-1).map(storedProgress)));
    const { status } = await agent({ model, tools: all }).run({ prompt: "Go", session: "s", store }).result;
    const states = names.map((name) => name === "send" ? "running" : "pending");
    assertEquals([status, progress], ["paused", [`tools ${states}`]]);
  }
});

Deno.test("the answers about calls are saved until the calls have results, and no longer", async () => {
  const { store, saved } = recordingStore();
  const model = scripted({ calls: [["pay", {}]] }, { calls: [["send", {}]] }, "Done.");
  const made = agent({ model, tools: tools([]) });
  const { questions: [question] } = await made.run({ prompt: "Go", session: "s", store }).result;
  const answers = [{ type: "approve", callId: question?.callId ?? "" }] as const;
  await made.resume({ session: "s", store, answers }).result;
  const counts = saved.flatMap(({ run }) => run && !run.exit ? [[run.position.at, run.answers.length]] : []);
  assertEquals(counts, [
    ...[["prompt", 0], ["model", 0], ["tools", 1], ["tools", 1], ["model", 0], ["tools", 0], ["model", 0]],
  ]);
});

Deno.test("a turn with calls is saved twice, before the calls run and after the turn, if no hook waits in between", async () => {
  const { store, saved } = recordingStore();
  const model = scripted({ text: "I do.", calls }, { calls }, "Done.");
  await agent({ model, tools: tools([]) }).run({ prompt: "Go", session: "s", store }).result;
  assertEquals(saved.map((session) => [session.messages.length, storedProgress(session)]), [
    [0, "prompt"],
    [1, "model"],
    [1, "tools running,running"],
    [3, "model"],
    [3, "tools running,running"],
    [5, "model"],
    [6, "end"],
  ]);
});

Deno.test("a run whose process died continues from its last save, and repeats no effect that must not be repeated", async () => {
  const { saved, whole } = await record();
  const outcomes = [];
  for (const session of saved.slice(0, -1)) {
    const { result, done, events } = await continueRun(session);
    assertEquals([result.status, result.run], ["done", whole.run]);
    assertEquals(events.filter(({ type }) => type === "run.started"), [
      {
        type: "run.started",
        run: whole.run,
        session: "s",
        resumed: true,
        usage: session.run?.usage ?? { input: 0, output: 0 },
      },
    ]);
    outcomes.push([...done, ...lines(result.messages).slice(3, 5)]);
  }
  const interrupted = "aborted Interrupted: it is not known whether it was done.";
  assertEquals(outcomes, [
    ["read 0", "send 1", "ok did read", "ok did send"],
    ["read 0", "send 1", "ok did read", "ok did send"],
    ["read 0", "ok did read", interrupted],
    ["ok did read", "ok did send"],
    ["ok did read", "ok did send"],
  ]);
});

Deno.test("a result that was not reviewed when the process died is reviewed", async () => {
  const use: Middleware[] = [{ name: "review", tool: async (_, next) => ({ ...await next(), ...text("reviewed") }) }];
  const { saved } = await record(use);
  const { result, done } = await continueRun(saved[3], { use });
  assertEquals([done, lines(result.messages).slice(3, 5)], [[], ["ok reviewed", "ok reviewed"]]);
});

Deno.test("a call that was executed before its process died is never answered as not run, also if it waits when the run ends", async () => {
  const use: Middleware[] = [{
    name: "end",
    async tool({ call, run }, next) {
      if (call.name === "send") throw run.pause("Go on?");
      try {
        return await next();
      } catch {
        throw run.end("enough"); // the call waits, since the run pauses
      }
    },
  }];
  const { saved } = await record();
  const answers = [];
  for (const session of [saved[2], saved[3]]) {
    const { result } = await continueRun(session, { use });
    answers.push([result.status, lines(result.messages).at(3)]);
  }
  assertEquals(answers, [
    ["cancelled", "aborted Interrupted: it is not known whether it was done."],
    ["cancelled", "error Withheld: the run was ended."],
  ]);
});

Deno.test("a call that was allowed before its process died runs again with the recorded input, although hooks would change it", async () => {
  const { saved } = await record();
  const use: Middleware[] = [{ name: "change", tool: (_, next) => next({ input: { other: true } }) }];
  const { result, done } = await continueRun(saved[2], { use });
  const interrupted = "aborted Interrupted: it is not known whether it was done.";
  assertEquals([done, lines(result.messages).slice(3, 5)], [["read 0"], ["ok did read", interrupted]]);
});

/** Pauses once, in a run that continues. */
const doubting: Middleware = {
  name: "doubting",
  tool: (ctx, next) => {
    const asked = state("doubting.asked", () => false);
    if (!ctx.resumed || asked.get(ctx)) return next();
    asked.set(ctx, true);
    throw ctx.run.pause("Go on?");
  },
};

Deno.test("a run that pauses after its process died still knows which calls were started", async () => {
  const { saved } = await record([doubting]);
  for (
    const [index, outcome] of [[2, "aborted Interrupted: it is not known whether it was done."], [
      3,
      "ok did send",
    ]] as const
  ) {
    const first = await continueRun(saved[index], { use: [doubting] });
    assertEquals([first.result.status, first.done], ["paused", []]);
    const second = await continueRun(first.saved.at(-1), { use: [doubting] });
    assertEquals([second.result.status, second.done, lines(second.result.messages)[4]], [
      "done",
      index === 2 ? ["read 0"] : [],
      outcome,
    ]);
  }
});

Deno.test("a saved result is kept, however often the process dies", async () => {
  const { saved } = await record();
  const { saved: repeated } = await continueRun(saved[3]);
  for (const session of repeated.slice(0, -1)) {
    const { result, done } = await continueRun(session);
    assertEquals([done, lines(result.messages).slice(3, 5)], [[], ["ok did read", "ok did send"]]);
  }
});

Deno.test("each result of a batch is saved while other calls run, also after a save that two messages waited for", async () => {
  const { store, saved } = recordingStore();
  const gates = Array.from({ length: 3 }, () => Promise.withResolvers<string>());
  const work = tool({
    name: "work",
    description: "Works",
    input: z.object({ index: z.number() }),
    execute: ({ index }) => gates[index]!.promise,
  });
  const held = Promise.withResolvers<void>();
  const isSaving = Promise.withResolvers<void>();
  let holding = false;
  const holdingStore = {
    ...store,
    journal: saving(store, async (_, save) => {
      if (holding) {
        isSaving.resolve();
        await held.promise;
      }
      return await save();
    }),
  };
  const calls = gates.map((_, index) => ["work", { index }] as const);
  const model = scripted({ calls }, "Done.");
  const run = agent({ model, tools: [work] }).run({ prompt: "Go", session: "s", store: holdingStore });
  /** Waits up to 1,000 ticks of the event loop, in which faultless code saves. */
  const untilSaved = async (progress: string) => {
    const isSaved = () => saved.some((session) => storedProgress(session) === progress);
    for (let turns = 0; turns < 1_000 && !isSaved(); turns++) await new Promise((resolve) => setTimeout(resolve));
    return isSaved();
  };
  assert(await untilSaved("tools running,running,running"));
  holding = true;
  const first = run.send("One");
  await isSaving.promise;
  const second = run.send("Two"); // its save is queued, and also contains the result that comes next
  gates[0]!.resolve("done");
  for (let turns = 0; turns < 10; turns++) await new Promise((resolve) => setTimeout(resolve));
  held.resolve();
  await Promise.all([first, second]);
  gates[1]!.resolve("done");
  assert(await untilSaved("tools ran,ran,running"));
  gates[2]!.resolve("done");
  assertEquals((await run.result).status, "done");
});

Deno.test("a run that was being stopped when its process died is ended, with the effects it had", async () => {
  using time = new FakeTime();
  const { store, saved } = recordingStore();
  const stopping = tool({
    name: "send",
    description: "Sends",
    input: z.object({}),
    execute: () => {
      run.stop("enough");
      return "did send";
    },
  });
  const slow: Middleware = {
    name: "slow",
    abort: () => new Promise((resolve) => setTimeout(resolve, 900)),
  };
  const model = scripted({ calls: [["send", {}]] }, "Done.");
  const run = agent({ model, tools: [stopping], use: [slow] }).run({ prompt: "Go", session: "s", store, lease: 300 });
  const { status } = await advanceUntilSettled(time, run.result);
  const left = saved.findLast(({ run }) => run);
  assertEquals([status, left?.lease?.closing], ["aborted", "enough"]);
  const { result, done } = await continueRun(left);
  assertEquals([result.status, result.reason, done], ["aborted", "enough", []]);
  assertEquals(lines(result.messages), ["user Go", "call send", "ok did send"]);
});

Deno.test("a stop is saved at once, so that a run whose process dies while a hook hangs is ended", async () => {
  using time = new FakeTime();
  const { store, saved } = recordingStore();
  const here = Promise.withResolvers<void>();
  const hang: Middleware = { tool: () => (here.resolve(), new Promise(() => {})) };
  const model = scripted({ text: "I do.", calls });
  const run = agent({ model, tools: tools([]), use: [hang] }).run({ prompt: "Go", session: "s", store });
  await here.promise;
  run.stop("enough");
  for (let round = 0; round < 10; round++) await time.tickAsync(1);
  const left = saved.at(-1);
  assertEquals([left?.lease?.closing, left?.run?.position.at], ["enough", "tools"]);
  const { result, done } = await continueRun(left);
  assertEquals([result.status, result.reason, done], ["aborted", "enough", []]);
  await advanceUntilSettled(time, run.result);
});

for (const text of ["lost", "deadline", "recoveries", "toString"]) {
  Deno.test(`a stop with the text "${text}" is saved as a text, and ends the run in another process at once`, async () => {
    using time = new FakeTime();
    const { store, saved } = recordingStore();
    const here = Promise.withResolvers<void>();
    const hang: Middleware = { input: () => (here.resolve(), new Promise(() => {})) };
    const run = agent({ model: scripted("Done."), use: [hang] }).run({ prompt: "Go", session: "s", store });
    await here.promise;
    run.stop(text);
    for (let round = 0; round < 10; round++) await time.tickAsync(1);
    const { result } = await continueRun(saved.at(-1));
    assertEquals([result.status, result.reason, lines(result.messages)], ["aborted", text, []]);
    await advanceUntilSettled(time, run.result);
  });

  Deno.test(`closing with the text "${text}" ends a paused run as any other text does`, async () => {
    const { store } = recordingStore();
    const assistant = agent({ model: scripted({ calls: [["pay", {}]] }, "Done."), tools: tools([]) });
    await assistant.run({ prompt: "Pay", session: "s", store }).result;
    const closed = await assistant.resume({ session: "s", store, answers: [], closing: text }).result;
    assertEquals([closed.status, closed.reason], ["aborted", text]);
    assertEquals(lines(closed.messages), ["user Pay", "call pay", "aborted Stopped before it was done."]);
  });
}

Deno.test("a stop that arrives while a save is under way is saved after it at once", async () => {
  using time = new FakeTime();
  const kept = memory();
  const stopping = durable(saving(kept, (session, save) => {
    const { position } = session.run ?? {};
    if (position?.at === "tools" && position.calls.some(({ state }) => state === "ran")) run.stop("enough");
    return save();
  }));
  const hang = (name: string) => name === "send" ? new Promise<void>(() => {}) : undefined;
  const model = scripted({ text: "I do.", calls });
  const run = agent({ model, tools: tools([], hang) }).run({ prompt: "Go", session: "s", store: stopping });
  for (let round = 0; round < 20; round++) await time.tickAsync(1);
  assertEquals((await kept.load("s"))?.lease?.closing, "enough");
  assertEquals((await advanceUntilSettled(time, run.result)).status, "aborted");
});

Deno.test("a run whose process died during a model response begins that turn again, under the same number", async () => {
  using time = new FakeTime();
  const { store, saved } = recordingStore();
  const { model, asked } = waiting();
  const run = agent({ model }).run({ prompt: "Go", session: "s", store, lease: 300 });
  await asked;
  await time.tickAsync(150);
  await time.tickAsync(150);
  const { result, events } = await continueRun(saved.at(-1));
  run.stop();
  await run.result;
  const turns = events.flatMap((event) => event.type === "turn.started" ? [event.turn] : []);
  assertEquals([saved.length > 3, result.status, turns], [true, "done", [1, 2]]);
});

Deno.test("abort cleans up after a process that died, and receives the open calls", async () => {
  const { saved } = await record();
  const seen: unknown[] = [];
  const use: Middleware[] = [{
    name: "clean",
    abort: async ({ reason, open }, next) => {
      seen.push([reason, ...open.map(({ name }) => name)]);
      await next();
    },
  }];
  assertEquals((await continueRun(saved[1], { use })).result.status, "done");
  assertEquals((await continueRun(saved[2], { use })).result.status, "done");
  assertEquals(seen, [["lost"], ["lost", "read", "send"]]);
});

Deno.test("a prompt to a session whose process died: its calls get results before the prompt is accepted", async () => {
  const { saved } = await record();
  const { store, saved: next } = await storeWith(saved[2]);
  const done: string[] = [];
  const model = scripted("Two.");
  const assistant = agent({ model, tools: tools(done) });
  const { status, messages, run } = await assistant.run({ prompt: "And?", session: "s", store, lost: () => true })
    .result;
  assertEquals([status, done, run === saved[0]?.run?.id], ["done", ["read 0"], false]);
  assertEquals(lines(messages), [
    ...transcript.slice(0, 4),
    "aborted Interrupted: it is not known whether it was done.",
    "user And?",
    "assistant Two.",
  ]);
  assertEquals(next.flatMap(({ last }) => last ? [last.event.type] : []), ["run.aborted", "run.finished"]);
});

Deno.test("a prompt accepted before the process died is in the transcript of the next run", async () => {
  const { saved } = await record();
  const { store } = await storeWith(saved[0]);
  const assistant = agent({ model: scripted("Two.") });
  const { messages } = await assistant.run({ prompt: "And?", session: "s", store, lost: () => true }).result;
  assertEquals(lines(messages), ["user Go", "user And?", "assistant Two."]);
});

/** A model that waits until it may continue. */
function waiting() {
  const asked = Promise.withResolvers<void>();
  const model = scripted({
    text: "Late.",
    before: (_, signal) => {
      asked.resolve();
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  });
  return { model, asked: asked.promise };
}

/** Returns how a run was refused. */
function refusal({ status, error }: RunResult) {
  return [
    status,
    error instanceof SessionError && error.code,
    error instanceof SessionError && error.run !== undefined,
  ];
}

Deno.test("a run holds its session until its lease expires", async () => {
  using time = new FakeTime();
  const { store, saved } = recordingStore();
  const { model, asked } = waiting();
  const first = agent({ model }).run({ prompt: "1", session: "s", store, lease: 3_000 });
  await asked;
  const assistant = agent({ model: scripted("Two.") });
  const repeated = () => assistant.run({ prompt: "2", session: "s", store }).result;
  for (let round = 0; round < 10; round++) await time.tickAsync(1_000);
  assertEquals(refusal(await repeated()), ["failed", "busy", true]);
  const left = await storeWith(saved.at(-1)); // as if its process died now
  first.stop();
  await first.result;
  const next = () => assistant.run({ prompt: "2", session: "s", store: left.store }).result;
  await time.tickAsync(1_999);
  assertEquals(refusal(await next()), ["failed", "busy", true]);
  await time.tickAsync(1_001);
  const { status, messages } = await next();
  assertEquals([status, lines(messages)], ["done", ["user 1", "user 2", "assistant Two."]]);
});

Deno.test("a run may replace the run that holds the session, which then stops", async () => {
  using time = new FakeTime();
  const { store } = recordingStore();
  const { model, asked } = waiting();
  const first = agent({ model }).run({ prompt: "1", session: "s", store });
  await asked;
  const assistant = agent({ model: scripted("Two.") });
  const second = await assistant.run({ prompt: "2", session: "s", store, busy: "replace" }).result;
  await time.tickAsync(10_000);
  const { status, reason } = await first.result;
  assertEquals([status, reason, lines(second.messages)], ["aborted", "lost", ["user 1", "user 2", "assistant Two."]]);
});

Deno.test("a run whose save took longer than its lease does nothing more if another run has the session by then", async () => {
  using time = new FakeTime();
  const kept = memory();
  const late = Promise.withResolvers<void>();
  const done: string[] = [];
  const slow = durable(saving(kept, async (session, save) => {
    const version = await save();
    if (session.run?.position.at === "tools") await late.promise;
    return version;
  }));
  const model = scripted({ calls: [["send", {}]] });
  const first = agent({ model, tools: tools(done) }).run({ prompt: "1", session: "s", store: slow, lease: 3_000 });
  while ((await kept.load("s"))?.run?.position.at !== "tools") await time.tickAsync(1);
  await time.tickAsync(3_001);
  const next = agent({ model: scripted("Two.") }).run({ prompt: "2", session: "s", store: durable(kept.journal) });
  assertEquals((await next.result).status, "done");
  late.resolve();
  const { status, reason } = await advanceUntilSettled(time, first.result);
  assertEquals([status, reason, done], ["aborted", "lost", []]);
});

Deno.test("closing ends a paused run: its calls are answered, and its cleanup runs", async () => {
  const { store } = recordingStore();
  const seen: string[] = [];
  const use: Middleware[] = [{
    name: "clean",
    abort: async ({ reason }, next) => {
      seen.push(reason);
      await next();
    },
  }];
  const assistant = agent({ model: scripted({ calls: [["pay", {}], ["read", {}]] }), tools: tools([]), use });
  await assistant.run({ prompt: "Pay", session: "s", store }).result;
  const closed = await assistant.resume({ session: "s", store, answers: [], closing: "stop" }).result;
  assertEquals([closed.status, closed.reason, seen], ["aborted", "stop", ["stop"]]);
  assertEquals(lines(closed.messages), [
    "user Pay",
    "call pay read",
    "aborted Stopped before it was done.",
    "ok did read",
  ]);
  assertEquals((await store.load("s"))?.run, undefined);
});

Deno.test("answers that were saved before the process died count, and may be sent again", async () => {
  const { store, saved } = recordingStore();
  const done: string[] = [];
  const model = scripted({ calls: [["pay", {}]] }, "Done.");
  const assistant = agent({ model, tools: tools(done) });
  const { questions } = await assistant.run({ prompt: "Pay", session: "s", store }).result;
  const answers = questions.map(({ callId = "" }) => ({ callId, type: "approve" } as const));
  await assistant.resume({ session: "s", store, answers }).result;
  const taken = saved.find(({ run }) => run && !run.exit && run.answers.length > 0);
  for (const repeated of [answers, []]) {
    const { result, done } = await continueRun(taken, { answers: repeated });
    assertEquals([result.status, done], ["done", ["pay 0"]]);
  }
  const other = await continueRun(taken, { answers: [{ callId: "call_1", type: "deny" }] });
  assertEquals(refusal(other.result), ["failed", "unasked", false]);
});

Deno.test("a session of another owner does not exist for a run", async () => {
  const { store } = recordingStore();
  const assistant = agent({ model: scripted("One.", "Bob's.", "Its own.", "Two.") });
  await assistant.run({ prompt: "1", session: "s", store, owner: "ada" }).result;
  const message = async (result: Promise<RunResult>) => String((await result).error);
  const none = await message(assistant.resume({ session: "t", store, answers: [], owner: "bob" }).result);
  for (const owner of ["bob", undefined]) {
    const others = await message(assistant.resume({ session: "s", store, answers: [], owner }).result);
    assertEquals(others, none.replace(`"t"`, `"s"`));
    const { messages } = await assistant.run({ prompt: "Mine", session: "s", store, owner }).result;
    assertEquals(lines(messages)[0], "user Mine"); // a session of its own
  }
  const { status, messages } = await assistant.run({ prompt: "2", session: "s", store, owner: "ada" }).result;
  assertEquals([status, lines(messages)[0], (await store.load("s", { owner: "ada" }))?.owner], [
    "done",
    "user 1",
    "ada",
  ]);
});

Deno.test("a failed save is retried, and counts once if it had succeeded", async () => {
  using time = new FakeTime();
  const { store } = recordingStore();
  const flaky = (made: boolean) => {
    let saves = 0;
    return {
      ...store,
      journal: saving(store, async (_, save) => {
        const fails = saves++ % 2 === 0;
        const version = fails && !made ? undefined : await save();
        if (fails) throw new Error("The disk is gone");
        return version;
      }),
    };
  };
  for (const made of [true, false]) {
    const run = agent({ model: scripted({ calls }, "Done."), tools: tools([]) })
      .run({ prompt: "Go", session: `s${made}`, store: flaky(made) });
    for (let round = 0; round < 20; round++) await time.tickAsync(100);
    const { status } = await run.result;
    assertEquals([status, (await store.load(`s${made}`))?.run], ["done", undefined]);
  }
});

Deno.test("a run whose session cannot be saved fails with an error that says so", async () => {
  using time = new FakeTime();
  const { store } = recordingStore();
  let broken = false;
  const breaking = tool({
    name: "break",
    description: "Breaks",
    input: z.object({}),
    execute: () => {
      broken = true;
      return "broken";
    },
  });
  const failing = saving(store, (_, save) => broken ? Promise.reject(new Error("The disk is gone")) : save());
  const errors: unknown[] = [];
  const run = agent({ model: scripted({ calls: [["break", {}]] }, "Done."), tools: [breaking] })
    .run({
      prompt: "Go",
      session: "s",
      store: { ...store, journal: failing },
      onError: (error) => errors.push(`${error}`),
    });
  for (let round = 0; round < 30; round++) await time.tickAsync(1_000);
  assertEquals([(await run.result).status, new Set(errors)], ["failed", new Set(["Error: The disk is gone"])]);
});

Deno.test("a prompt that ends a pause keeps the messages that other processes sent to the paused run", async () => {
  const { store, saved } = recordingStore();
  const model = scripted({ calls: [["pay", {}]] });
  const paused = await agent({ model, tools: tools([]) }).run({ prompt: "Go", session: "s", store }).result;
  assertEquals(paused.status, "paused");
  const session = saved.at(-1)!;
  const mail = [{ type: "message", message: user("Make it red") }] as const;
  assertEquals(await store.save({ ...session, mail }), session.version + 1);
  const next = agent({ model: scripted("Done."), tools: tools([]) });
  const { messages } = await next.run({ prompt: "Go on", session: "s", store }).result;
  assertEquals(lines(messages), [
    "user Go",
    "call pay",
    "skipped The conversation went on without an answer.",
    "user Make it red",
    "user Go on",
    "assistant Done.",
  ]);
});
