/**
 * The results of calls that a client has read, although the process died at once.
 *
 * @module
 */
import {
  agent,
  type AnyTool,
  type CallResult,
  deny,
  type Message,
  type Middleware,
  tool,
  ToolError,
} from "@jizai/jizai";
import { durable, type Journal } from "@jizai/jizai/session/durable";
import { migrate, sqliteStore } from "@jizai/jizai/session/sqlite";
import { scripted, type ScriptedStep } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { DatabaseSync } from "node:sqlite";
import * as z from "zod";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { type Process, processOf, type Shared, shared } from "../support/process.ts";
import { eventsOf, type Framed, post } from "../support/requests.ts";

/** The stores that outlive a process. */
const places: Readonly<Record<string, () => Shared>> = {
  memory: shared,
  SQLite() {
    const database = new DatabaseSync(":memory:");
    migrate(database);
    return { store: sqliteStore(database) };
  },
};

/** The tools and the middleware of an agent. */
interface Options {
  readonly tools: readonly AnyTool[];
  readonly use?: readonly Middleware[];
}

/** Starts a process that dies when the journal has the `count`th result, before a client reads it. */
function dying({ store }: Shared, options: Options, steps: readonly ScriptedStep[], count = 1) {
  const died = Promise.withResolvers<void>();
  let results = 0;
  const append: Journal["append"] = async (key, append) => {
    const appended = await store.journal.append(key, append);
    const lines = append.events?.lines ?? [];
    results += lines.filter((line) => line.startsWith(`{"type":"tool.finished"`)).length;
    if (results >= count) {
      process.kill();
      died.resolve();
    }
    return appended;
  };
  const made = agent({ ...options, model: scripted(...steps) });
  const process: Process = processOf({ store: durable({ ...store.journal, append }) }, made, { singleProcess: true });
  return { app: process.app, died: died.promise };
}

/** The outcome of a run whose first process died after its first result. */
interface Outcome {
  readonly events: readonly Framed[];
  readonly messages: readonly Message[];
}

/** Begins a run, whose process dies at its first result, and continues it in another process to its end. */
async function survive(
  among: Shared,
  options: Options,
  first: ScriptedStep,
  rest: readonly ScriptedStep[] = [{ text: "Done." }],
): Promise<Outcome> {
  using time = new FakeTime();
  const { app, died } = dying(among, options, [first]);
  const { run, session } = await (await post(app, "/runs", { prompt: "Go" }, { prefer: "respond-async" })).json();
  await advanceUntilSettled(time, died);
  const next = processOf(among, agent({ ...options, model: scripted(...rest) }), { singleProcess: true });
  const { runs, over } = await next.app.recover();
  assertEquals(runs, [run]);
  await advanceUntilSettled(time, over);
  return await outcomeOf(among, run, session);
}

async function outcomeOf({ store }: Shared, run: string, session: string): Promise<Outcome> {
  const reader = processOf({ store }, agent({ model: scripted() }));
  const events = await eventsOf(reader.app.request(`/runs/${run}`));
  return { events, messages: (await store.load(session))?.messages ?? [] };
}

function shownResults({ events }: Outcome): readonly CallResult[] {
  return events.flatMap((event) => event.type === "tool.finished" ? [event.result] : []);
}

function storedResults({ messages }: Outcome): readonly CallResult[] {
  return messages.flatMap((message) => message.role === "tool" ? message.results : []);
}

/** A tool that counts its executions. */
function counted(idempotent: boolean) {
  const done: number[] = [];
  const send = tool({
    name: "send",
    description: "Sends a number",
    input: z.object({ n: z.number() }),
    idempotent,
    execute({ n }) {
      done.push(n);
      return `sent ${n}, as number ${done.length}`;
    },
  });
  return { send, done };
}

const ok = (callId: string, answer: string): CallResult => ({
  callId,
  name: "send",
  status: "ok",
  parts: [{ type: "text", text: answer }],
});

for (const [place, open] of Object.entries(places)) {
  for (const idempotent of [false, true]) {
    const kind = idempotent ? "an idempotent call" : "a call";
    Deno.test(`a client that has read the result of ${kind} reads no other one after a crash, with ${place}`, async () => {
      const { send, done } = counted(idempotent);
      const outcome = await survive(open(), { tools: [send] }, {
        calls: [{ id: "c1", name: "send", input: { n: 7 } }],
      });
      const result = ok("c1", "sent 7, as number 1");
      assertEquals([shownResults(outcome), storedResults(outcome), done], [[result], [result], [7]]);
      assertEquals(outcome.events.at(-1)?.type, "run.finished");
    });
  }

  Deno.test(`a denied call keeps the result that a client has read before a crash, with ${place}`, async () => {
    const { send, done } = counted(false);
    let asked = 0;
    const guard: Middleware = { name: "guard", approval: () => Promise.resolve(deny(`No, for the ${++asked}. time.`)) };
    const options = { tools: [send], use: [guard] };
    const outcome = await survive(open(), options, { calls: [{ id: "c1", name: "send", input: { n: 7 } }] });
    assertEquals(shownResults(outcome).length, 1);
    assertEquals([storedResults(outcome), done], [shownResults(outcome), []]);
    assertEquals([shownResults(outcome)[0]?.status, asked], ["denied", 1]);
  });

  Deno.test(`a failed call keeps the result that a client has read before a crash, with ${place}`, async () => {
    let tries = 0;
    const fail = tool({
      name: "send",
      description: "Fails",
      input: z.object({}),
      idempotent: true,
      execute() {
        throw new ToolError(`Failure ${++tries}`);
      },
    });
    const outcome = await survive(open(), { tools: [fail] }, { calls: [{ id: "c1", name: "send", input: {} }] });
    const result = { ...ok("c1", "Failure 1"), status: "error" as const };
    assertEquals([shownResults(outcome), storedResults(outcome)], [[result], [result]]);
  });

  Deno.test(`the results that a client has not read are made after a crash, with ${place}`, async () => {
    const { send, done } = counted(false);
    const use = [{ name: "alone", groups: () => "alone" as const }];
    const calls = [1, 2].map((n) => ({ id: `c${n}`, name: "send", input: { n } }));
    const outcome = await survive(open(), { tools: [send], use }, { calls });
    const results = [ok("c1", "sent 1, as number 1"), ok("c2", "sent 2, as number 2")];
    assertEquals([shownResults(outcome), storedResults(outcome), done], [results, results, [1, 2]]);
  });

  Deno.test(`a reviewed result does not pass its hooks again after a crash, with ${place}`, async () => {
    const { send, done } = counted(true);
    let reviews = 0;
    const mask: Middleware = {
      name: "mask",
      async tool(_, next) {
        const result = await next();
        return { ...result, parts: [{ type: "text", text: `masked, as number ${++reviews}` }] };
      },
    };
    const call = { id: "c1", name: "send", input: { n: 7 } };
    const outcome = await survive(open(), { tools: [send], use: [mask] }, { calls: [call] });
    const result = ok("c1", "masked, as number 1");
    assertEquals([shownResults(outcome), storedResults(outcome), done, reviews], [[result], [result], [7], 1]);
  });

  Deno.test(`a result that clients do not receive reaches the model after a crash, with ${place}`, async () => {
    const { send, done } = counted(true);
    const silent: Middleware = { name: "silent", tool: async (_, next) => ({ ...await next(), silent: true }) };
    const call = { id: "c1", name: "send", input: { n: 7 } };
    const outcome = await survive(open(), { tools: [send], use: [silent] }, { calls: [call] });
    assertEquals([shownResults(outcome), done], [[{ ...ok("c1", ""), parts: [] }], [7]]);
    assertEquals(storedResults(outcome), [ok("c1", "sent 7, as number 1")]);
  });

  Deno.test(`results that were read before two crashes stay, with ${place}`, async () => {
    using time = new FakeTime();
    const { send, done } = counted(false);
    const options = { tools: [send], use: [{ name: "alone", groups: () => "alone" as const }] };
    const calls = [1, 2, 3].map((n) => ({ id: `c${n}`, name: "send", input: { n } }));
    const among = open();
    const first = dying(among, options, [{ calls }]);
    const { run, session } = await (await post(first.app, "/runs", { prompt: "Go" }, { prefer: "respond-async" }))
      .json();
    await advanceUntilSettled(time, first.died);
    const second = dying(among, options, []);
    assertEquals((await second.app.recover()).runs, [run]);
    await advanceUntilSettled(time, second.died);
    const third = processOf(among, agent({ ...options, model: scripted("Done.") }), { singleProcess: true });
    await advanceUntilSettled(time, (await third.app.recover()).over);
    const outcome = await outcomeOf(among, run, session);
    const results = [1, 2, 3].map((n) => ok(`c${n}`, `sent ${n}, as number ${n}`));
    assertEquals([shownResults(outcome), storedResults(outcome), done], [results, results, [1, 2, 3]]);
  });

  Deno.test(`a run that is stopped after a crash keeps the result that a client has read, with ${place}`, async () => {
    using time = new FakeTime();
    const { send } = counted(false);
    const among = open();
    const { app, died } = dying(among, { tools: [send] }, [{ calls: [{ id: "c1", name: "send", input: { n: 7 } }] }]);
    const { run, session } = await (await post(app, "/runs", { prompt: "Go" }, { prefer: "respond-async" })).json();
    await advanceUntilSettled(time, died);
    const next = processOf(among, agent({ tools: [send], model: scripted("Done.") }), { singleProcess: true });
    const stopped = Promise.resolve(next.app.request(`/runs/${run}/stop`, { method: "POST" }));
    assertEquals((await advanceUntilSettled(time, stopped)).status, 204);
    const end = Promise.resolve(next.app.request(`/runs/${run}`));
    await advanceUntilSettled(time, end.then((response) => response.text()));
    const outcome = await outcomeOf(among, run, session);
    const result = ok("c1", "sent 7, as number 1");
    assertEquals([shownResults(outcome), storedResults(outcome)], [[result], [result]]);
    assertEquals(outcome.events.at(-1)?.type, "run.aborted");
  });
}
