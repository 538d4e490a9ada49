import { assertEquals, assertInstanceOf } from "@std/assert";
import {
  type Agent,
  compacted,
  type Event,
  memory,
  type Middleware,
  ModelError,
  noUsage,
  refused,
  type RunResult,
  type Session,
  SessionError,
  type Store,
  tool,
  user,
  vars,
} from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import { eventLines, eventsOfRun } from "../support/run_events.ts";
import { history, look, short } from "../support/long.ts";
import { recordingStore, storeWith } from "../support/recording_store.ts";
import { compact } from "@jizai/jizai/middleware/compaction";
import { compacting } from "../support/compacting.ts";
import { durable, FinalError } from "@jizai/jizai/session/durable";
import { saving } from "../support/saving.ts";

/** Compacts to a summary and the last message. */
const summing: Middleware = {
  name: "summing",
  compact: ({ transcript }) => Promise.resolve(compacted([user("All of it.", "summing"), ...transcript.slice(-1)])),
};

const whole = ["user First", "assistant One", "user Second", "assistant Two"];

/** A store with a long conversation. */
async function storeWithHistory(rest: Partial<Session> = {}): Promise<Store> {
  const store = memory();
  await store.save({ id: "s", version: 0, messages: history, ...rest });
  return store;
}

/** Returns the code of the `SessionError` of a run. */
function refusal({ status, error }: RunResult): unknown[] {
  assertInstanceOf(error, SessionError);
  return [status, error.code, error.message];
}

// ── what is kept ──

Deno.test("the history of a compacted session has each message once, and no page of it has what a rollback removed", async () => {
  const store = await storeWithHistory({ owner: "ada" });
  const assistant = compacting({ model: scripted("Three.", "Four."), use: [summing], limits: { context: 100 } });
  const options = { session: "s", store, owner: "ada" };
  await assistant.run({ ...options, prompt: "Third" }).result;
  await assistant.run({ ...options, prompt: "x".repeat(400) }).result;
  const { owner, compactions, messages = [] } = await store.load("s", { owner: "ada" }) ?? {};
  const summary = "summing All of it.";
  assertEquals([owner, compactions, ...short(messages)], ["ada", 2, summary, "user", "assistant Four."]);
  const { messages: all = [], before } = await store.history("s", { owner: "ada" }) ?? {};
  assertEquals(short(all), [...whole, summary, "user Third", "assistant Three.", "user", "assistant Four."]); // the second summary has the same text
  assertEquals(before, undefined);
  const pages: string[][] = [];
  for (let before: number | undefined = Infinity; before !== undefined;) {
    const page = await store.history("s", { owner: "ada", limit: 3, before });
    pages.unshift(short(page?.messages ?? []));
    before = page?.before;
  }
  assertEquals(pages.flat(), short(all));
  assertEquals(pages.slice(1).map(({ length }) => length), Array(pages.length - 1).fill(3));
  assertEquals(await store.list({ owner: "ada" }), ["s"]);
});

Deno.test("a run can continue from the transcript before a compaction, in a session that is forked there", async () => {
  const store = await storeWithHistory();
  const assistant = compacting({ model: scripted("Three.", "Three again."), use: [summing] });
  await compact(assistant, { session: "s", store }).result;
  const { numbers = [], messages: all = [] } = await store.history("s") ?? {};
  assertEquals(short(all), [...whole.slice(0, 3), "summing All of it.", ...whole.slice(3)]);
  const summary = numbers[3] ?? 0;
  assertEquals(await store.fork("s", "forked", { at: summary - 2 }), true); // a compaction is an entry of its own
  const { messages } = await assistant.run({ session: "forked", store, prompt: "Third" }).result;
  assertEquals(short(messages), [...whole, "user Third", "assistant Three."]);
  assertEquals(short((await store.load("s"))?.messages ?? []), ["summing All of it.", "assistant Two"]);
  assertEquals(await store.fork("s", "forked"), false);
  assertEquals(await store.fork("none", "new"), false);
  assertEquals(await store.fork("s", "new", { at: 1_000 }), false);
  assertEquals(await store.fork("s", "copy"), true);
  assertEquals((await store.load("copy"))?.messages, (await store.load("s"))?.messages);
});

Deno.test("a run without a session stores no history", async () => {
  const store = memory();
  const assistant = compacting({ model: scripted("Three."), use: [summing], limits: { context: 100 } });
  const { messages } = await assistant.run({ messages: [...history, user("Third")], store }).result;
  assertEquals(short(messages), ["summing All of it.", "user Third", "assistant Three."]);
  assertEquals(await store.list(), []);
});

Deno.test("the compacted session is stored before the model is asked", async () => {
  const { store, saved } = recordingStore();
  await store.save({ id: "s", version: 0, messages: history });
  const model = scripted({ text: "Three.", before: () => assertEquals(saved.length, 4) });
  await compacting({ model, use: [summing], limits: { context: 100 } }).run({ session: "s", store, prompt: "Third" })
    .result;
  assertEquals(saved.slice(1).map(({ messages }) => messages.length), [4, 5, 2, 3]);
});

Deno.test("a store that rejects the compacted transcript fails the run, and loses nothing", async () => {
  const store = await storeWithHistory();
  const reject = (session: Session, save: () => Promise<number | undefined>) =>
    session.compactions ? Promise.reject(new FinalError("full")) : save();
  const full = durable(saving(store, reject));
  const assistant = compacting({ model: scripted(), use: [summing] });
  const { status, messages } = await compact(assistant, { session: "s", store: full }).result;
  assertEquals([status, short(messages)], ["failed", ["summing All of it.", "assistant Two"]]);
  assertEquals(short((await store.load("s"))?.messages ?? []), whole);
});

Deno.test("a rollback restores the transcript from before a compaction, and its history", async () => {
  const store = await storeWithHistory();
  const use: Middleware[] = [summing, { stop: (ctx) => Promise.reject(ctx.run.end("enough", { rollback: true })) }];
  await compacting({ model: scripted("Three."), use, limits: { context: 100 } })
    .run({ session: "s", store, prompt: "Third" }).result;
  const { messages = [], compactions } = await store.load("s") ?? {};
  assertEquals([short(messages), compactions], [whole, undefined]);
  assertEquals(short((await store.history("s"))?.messages ?? []), whole);
});

Deno.test("a rollback in another process restores the compacted transcript", async () => {
  const { store, saved } = recordingStore();
  await store.save({ id: "s", version: 0, messages: history });
  const keepsEnd: Middleware = {
    compact: ({ transcript }) => Promise.resolve(compacted([user("All of it.", "summing"), ...transcript.slice(-2)])),
  };
  const calls = { calls: [["look", { at: "a" }]] } as const;
  const assistant = compacting({
    model: scripted(calls, "Done."),
    tools: [look],
    use: [keepsEnd],
    limits: { context: 300 },
  });
  await assistant.run({ session: "s", store, prompt: "Third" }).result;
  const use: Middleware[] = [{ stop: (ctx) => Promise.reject(ctx.run.end("enough", { rollback: true })) }];
  const died = saved.findLast(({ run }) => run?.position.at === "model");
  const other = await storeWith(died);
  const { messages } = await compacting({ model: scripted("Done."), tools: [look], use })
    .resume({ session: "s", store: other.store, answers: [], lost: () => true }).result;
  assertEquals(short(messages), ["summing All of it.", "assistant Two"]);
  assertEquals((await other.store.load("s"))?.compactions, died?.compactions);
});

// ── by hand ──

Deno.test("compact() compacts a session without a run, and a run continues it", async () => {
  const store = await storeWithHistory({ state: [["kept", 1]], rules: [{ tool: "look" }] });
  const assistant = compacting({ model: scripted("Three."), use: [summing] });
  const handle = compact(assistant, { session: "s", store });
  assertEquals(eventLines(await eventsOfRun(handle)), [
    "run.started run s false",
    "session.opened resume",
    "compact.started manual",
    "compact.finished manual compacted 434 118",
    "session.closed",
    "run.finished done ",
  ]);
  const { status, text, usage, messages } = await handle.result;
  assertEquals([handle.session, status, text, usage], ["s", "done", "", { input: 0, output: 0 }]);
  assertEquals(short(messages), ["summing All of it.", "assistant Two"]);
  const { version: _, last, compactions, readUntil: __, ...kept } = await store.load("s") ?? {};
  assertEquals(last?.event.type, "run.finished");
  assertEquals(kept, { id: "s", messages, state: [["kept", 1]], rules: [{ tool: "look" }] });
  assertEquals(compactions, 1);
  const { messages: all = [] } = await store.history("s") ?? {};
  assertEquals(short(all), [...whole.slice(0, 3), "summing All of it.", ...whole.slice(3)]);
  const next = await assistant.run({ session: "s", store, prompt: "Third" }).result;
  assertEquals(short(next.messages), ["summing All of it.", "assistant Two", "user Third", "assistant Three."]);
});

Deno.test("compact() of an unknown session, or of another owner's, is refused", async () => {
  const store = await storeWithHistory({ owner: "ada" });
  const assistant = compacting({ model: scripted(), use: [summing] });
  for (const [session, owner] of [["other", "ada"], ["s", "bob"]] as const) {
    const { result, events } = compact(assistant, { session, store, owner });
    assertEquals(refusal(await result), ["failed", "unknown", `Cannot compact session "${session}": there is none`]);
    assertEquals(await Array.fromAsync(events), []);
  }
  assertEquals([await store.list({ owner: "ada" }), await store.list({ owner: "bob" })], [["s"], []]);
});

Deno.test("compact() during a run is refused, and a run during compact() is refused", async () => {
  const store = await storeWithHistory();
  const begun = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const slow: Middleware = {
    async compact(_, next) {
      begun.resolve();
      await gate.promise;
      return await next();
    },
  };
  const assistant = compacting({ model: scripted("Three."), use: [slow, summing] });
  const running = compact(assistant, { session: "s", store });
  await begun.promise;
  const busy = ["failed", "busy"];
  assertEquals(refusal(await assistant.run({ session: "s", store, prompt: "Third" }).result).slice(0, 2), busy);
  assertEquals(refusal(await compact(assistant, { session: "s", store }).result), [
    ...busy,
    `Cannot compact session "s": a run has it`,
  ]);
  gate.resolve();
  assertEquals((await running.result).status, "done");
  assertEquals(await store.list(), ["s"]);
});

Deno.test("compact() of a paused session is refused", async () => {
  const store = memory();
  const pay = tool({ name: "pay", description: "Pays", input: z.object({}), ask: true, execute: () => "Paid" });
  const assistant = compacting({ model: scripted({ calls: [["pay", {}]] }, "Done."), tools: [pay], use: [summing] });
  const { run } = await assistant.run({ session: "s", store, prompt: "Pay" }).result;
  const { error, status } = await compact(assistant, { session: "s", store }).result;
  assertInstanceOf(error, SessionError);
  assertEquals([status, error.code, error.run], ["failed", "busy", run]);
  const answers = [{ callId: "call_1", type: "approve" as const }];
  assertEquals((await assistant.resume({ session: "s", store, answers }).result).status, "done");
});

Deno.test("compact() runs the session hooks, which may refuse it and choose its model", async () => {
  const store = await storeWithHistory();
  const ids: unknown[] = [];
  const other = { ...scripted(), id: "other" };
  const use = (refuse: boolean): Middleware[] => [{
    session: (_, next) => refuse ? Promise.resolve(refused("Not here.")) : next({ settings: { model: other } }),
    compact: (ctx, next) => (ids.push(ctx.model.id), next()),
  }, summing];
  const refusing = compact(compacting({ model: scripted(), use: use(true) }), { session: "s", store });
  assertEquals(eventLines(await eventsOfRun(refusing)).at(-1), "run.finished cancelled  Not here.");
  assertEquals((await store.load("s"))?.messages.length, 4);
  await compact(compacting({ model: scripted(), use: use(false) }), { session: "s", store }).result;
  assertEquals(ids, ["other"]);
});

Deno.test("compact() passes the vars that the agent needs", async () => {
  const store = await storeWithHistory();
  const seen: string[] = [];
  const assistant = compacting({
    vars: vars<{ user: string }>(),
    model: ({ vars: { user } }) => ({ ...scripted(), id: `model of ${user}` }),
    use: [{ compact: (ctx, next) => (seen.push(`${ctx.vars.user} ${ctx.model.id}`), next()) }],
  });
  await compact(assistant, { session: "s", store, vars: { user: "Ada" } }).result;
  assertEquals(seen, ["Ada model of Ada"]);
});

Deno.test("compact() without a store compacts the session in the agent's own memory", async () => {
  const assistant = compacting({ model: scripted("One.", "Two."), use: [summing] });
  for (const prompt of ["First", "Second"]) await assistant.run({ session: "s", prompt }).result;
  const { messages } = await compact(assistant, { session: "s" }).result;
  assertEquals(short(messages), ["summing All of it.", "assistant Two."]);
});

Deno.test("a server starts a compaction with its own sink and run id", async () => {
  const store = await storeWithHistory();
  const events: Event[] = [];
  const assistant = compacting({ model: scripted(), use: [summing] });
  const start = assistant.start as (options: object, sink: object) => ReturnType<Agent<unknown, unknown>["start"]>; // only the server may set the run id
  const started = start({ session: "s", store, run: "r1", compact: { instructions: "" } }, {
    write: ({ event }: { readonly event: Event }) => events.push(event),
    cork() {},
    uncork() {},
    full: undefined,
    close() {},
  });
  assertEquals(await started.ready, { run: "r1", after: 0, usage: noUsage });
  assertEquals((await started.result).run, "r1");
  assertEquals(eventLines(events).at(0), "run.started r1 s false");
});

// ── in the middle of things ──

Deno.test("a manual compaction whose process died starts again on resume, and adds no message", async () => {
  const { store, saved } = recordingStore();
  await store.save({ id: "s", version: 0, messages: history });
  await compact(compacting({ model: scripted(), use: [summing] }), { session: "s", store, instructions: "Mind." })
    .result;
  const begun = saved.find(({ run }) => run);
  assertEquals(begun?.run?.position, { at: "compact", instructions: "Mind." });

  const minded: string[] = [];
  const use: Middleware[] = [{ compact: (ctx, next) => (minded.push(ctx.instructions), next()) }, summing];
  const repeated = await storeWith(begun);
  const model = scripted("Three.");
  const options = { session: "s", store: repeated.store, lost: () => true };
  const resumed = await compacting({ model, use }).resume({ ...options, answers: [] }).result;
  assertEquals([resumed.status, short(resumed.messages)], ["done", ["summing All of it.", "assistant Two"]]);
  assertEquals([minded, (await repeated.store.load("s"))?.run], [["Mind."], undefined]);

  const other = await storeWith(begun);
  const { status, messages } = await compacting({ model, use })
    .run({ ...options, store: other.store, prompt: "Third" }).result;
  assertEquals([status, short(messages)], ["done", [...whole, "user Third", "assistant Three."]]);
  assertEquals(minded.length, 1);
});

Deno.test("a compaction may pause for a person, whatever its trigger", async () => {
  const asking: Middleware = {
    compact(ctx, next) {
      if (ctx.run.answers.length === 0) throw ctx.run.pause("May I?");
      return next();
    },
  };
  const tooLarge = new ModelError("Too long", { overflow: true });
  const outcomes: unknown[] = [];
  for (const trigger of ["auto", "overflow", "manual"] as const) {
    const { store } = recordingStore();
    await store.save({ id: "s", version: 0, messages: history });
    const steps = trigger === "overflow" ? [{ error: tooLarge }, { error: tooLarge }, "Done."] : ["Done."];
    const limits = { context: trigger === "auto" ? 400 : Infinity };
    const assistant = compacting({ model: scripted(...steps), use: [asking, summing], limits });
    const options = { session: "s", store };
    const first =
      await (trigger === "manual" ? compact(assistant, options) : assistant.run({ ...options, prompt: "Now" }))
        .result;
    const second = await assistant.resume({ ...options, answers: [{ type: "reply", text: "Yes" }] }).result;
    outcomes.push([first.status, first.questions.flatMap(({ questions }) => questions), second.status]);
    const end = trigger === "manual" ? ["assistant Two"] : ["user Now", "assistant Done."];
    assertEquals(short(second.messages), ["summing All of it.", ...end], trigger);
  }
  assertEquals(outcomes, Array.from({ length: 3 }, () => ["paused", ["May I?"], "done"]));
});

Deno.test("a compacted run pauses, resumes in another process, and is compacted again", async () => {
  const { store, saved } = recordingStore();
  await store.save({ id: "s", version: 0, messages: history });
  const done: string[] = [];
  const pay = tool({
    name: "pay",
    description: "Pays",
    input: z.object({ sum: z.number() }),
    ask: true,
    execute: ({ sum }) => `Paid ${sum} ${done.push(`${sum}`) && "x".repeat(400)}`,
  });
  const steps = [{ calls: [["pay", { sum: 1 }], ["look", { at: "a" }]] }, { calls: [["look", { at: "b" }]] }] as const;
  const make = (from: number) =>
    compacting({ model: scripted(...steps.slice(from), "Done."), tools: [pay, look], limits: { context: 250 } });
  const paused = await make(0).run({ session: "s", store, prompt: "Now" }).result;
  assertEquals([paused.status, short(paused.messages)], ["paused", ["user First", "user Now"]]);

  const other = await storeWith(saved.at(-1));
  const answers = [{ callId: "call_1", type: "approve" as const }];
  const resumed = make(1).resume({ session: "s", store: other.store, answers });
  const events = await eventsOfRun(resumed);
  assertEquals(eventLines(events).filter((line) => /^(compact.f|turn.s|warning)/.test(line)), [
    "turn.started 1",
    "turn.started 2",
    "compact.finished auto declined 305 305 There is nothing that could be left out.",
    "turn.started 3",
    "compact.finished auto compacted 374 186",
  ]);
  const { status, messages, text } = await resumed.result;
  assertEquals([status, text, done], ["done", "Done.", ["1"]]);
  assertEquals(short(messages), ["user First", "user Now", "call look", "ok Seen b", "assistant Done."]);
  const kept = await other.store.history("s");
  assertEquals(short(kept?.messages ?? []).slice(0, 4), ["user First", "user Now", "call pay look", "ok Paid 1"]);
});
