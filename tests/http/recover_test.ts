import { agent, memory, type Middleware, type Model, serve, type ServeOptions, tool, vars } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { placeOf } from "../../src/core/journal.ts";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { waiting } from "../support/halting.ts";
import { failingAppends, recordOf } from "../support/events_journal.ts";
import { type Process, processOf, type Shared, shared } from "../support/process.ts";
import { eventsOf, first, type Framed, framesOf, piecesOf, post } from "../support/requests.ts";
import { storedRun } from "../support/stored_run.ts";

const lease = 30_000;

const stuck = waiting("Half");

/** Begins a run in a process of its own, which dies in the middle of the answer. */
async function dead(among: Shared, options: ServeOptions = {}, prompt = "Hi") {
  const process = processOf(among, agent({ model: stuck }), options);
  const received = framesOf(await piecesOf(await post(process.app, "/runs", { prompt })).until("Half"));
  process.kill();
  return first("run.started", received);
}

function endOf(events: readonly Framed[]): readonly unknown[] {
  const { type, ...rest } = events.at(-1) ?? { type: "none" };
  return [type, "reason" in rest ? rest.reason : "text" in rest ? rest.text : undefined];
}

Deno.test("recover() continues a run whose process died, to its end, without a request", async () => {
  using time = new FakeTime();
  const among = shared();
  const { run, session } = await dead(among);
  const reasons: string[] = [];
  const watch: Middleware = {
    name: "watch",
    async abort({ reason }, next) {
      reasons.push(reason);
      await next();
    },
  };
  const { app } = processOf(among, agent({ model: scripted("Whole."), use: [watch] }));
  assertEquals((await app.recover()).runs, []);
  await advance(time, lease);
  const { runs, over } = await app.recover();
  assertEquals([runs, (await app.recover()).runs], [[run], []]);
  await advanceUntilSettled(time, over);
  const events = await recordOf(among.store, run);
  assertEquals([endOf(events), reasons], [["run.finished", "Whole."], ["lost"]]);
  assertEquals(events.filter(({ type }) => type === "run.started").length, 2);
  assertEquals(storedRun(await among.store.load(session)), undefined);
  assertEquals((await app.recover()).runs, []);
});

Deno.test("recover() of several processes at once takes a run over once", async () => {
  using time = new FakeTime();
  const among = shared();
  const { run } = await dead(among);
  await advance(time, lease);
  const model = scripted("Whole.", "Twice.");
  const apps = [1, 2, 3].map(() => processOf(among, agent({ model })).app);
  const taken = await Promise.all(apps.map((app) => app.recover()));
  assertEquals(taken.flatMap(({ runs }) => runs), [run]);
  await advanceUntilSettled(time, Promise.all(taken.map(({ over }) => over)));
  assertEquals([endOf(await recordOf(among.store, run)), model.requests.length], [["run.finished", "Whole."], 1]);
});

for (const moment of ["head", "recoveryVars", "open"] as const) {
  Deno.test(`recover() leaves a run to other processes at once if its process shuts down at ${moment}`, async () => {
    using time = new FakeTime();
    const among = shared();
    const { run } = await dead(among);
    await advance(time, lease);
    const shutdown = new AbortController();
    const { journal } = among.store;
    const ended = Promise.withResolvers<void>();
    const shutDownAt = (reached: string) => {
      if (reached !== moment) return;
      shutdown.abort();
      ended.resolve(ending.settled());
    };
    const errors: unknown[] = [];
    const ending = serve(agent({ model: scripted("Late.") }), {
      ...among,
      store: durable({
        ...journal,
        head: (key) => journal.head(key).finally(() => shutDownAt("head")),
        open: (key) => journal.open(key).finally(() => shutDownAt("open")),
      }),
      vars: () => ({}),
      recoveryVars: () => Promise.resolve({}).finally(() => shutDownAt("recoveryVars")),
      signal: shutdown.signal,
      onError: (error) => void errors.push(error),
    });
    const late = ending.recover();
    await ended.promise; // from here on, the process may exit
    const { app } = processOf(among, agent({ model: scripted("Whole.") }));
    const { runs, over } = await app.recover();
    assertEquals(runs, [run]);
    await advanceUntilSettled(time, over);
    assertEquals(endOf(await recordOf(among.store, run)), ["run.finished", "Whole."]);
    assertEquals([(await late).runs, errors], [moment === "open" ? [run] : [], []]); // it had begun, and was handed over
  });
}

Deno.test("recover() takes over at most `limit` runs, those that were lost first", async () => {
  using time = new FakeTime();
  const among = shared();
  const lost: string[] = [];
  for (let n = 0; n < 5; n++) {
    lost.push((await dead(among)).run);
    await advance(time, 1_000);
  }
  await advance(time, lease);
  const { app } = processOf(among, agent({ model: scripted("1", "2", "3", "4", "5") }));
  const taken: (readonly string[])[] = [];
  for (let n = 0; n < 4; n++) {
    const { runs, over } = await app.recover({ limit: 2 });
    taken.push(runs);
    await advanceUntilSettled(time, over);
  }
  assertEquals(taken, [lost.slice(0, 2), lost.slice(2, 4), lost.slice(4), []]);
  await assertRejects(
    () => app.recover({ limit: 0 }),
    RangeError,
    "Cannot recover runs: `limit` is 0; expected a whole number of at least 1",
  );
});

Deno.test("recover() with singleProcess takes over at once the runs that the process does not execute, and no others", async () => {
  using time = new FakeTime();
  const among = shared();
  const { run } = await dead(among);
  const { app } = processOf(among, agent({ model: scripted("Mine.", "Whole.") }), { singleProcess: true });
  const going = processOf(among, agent({ model: stuck }), { singleProcess: true });
  const own = await post(going.app, "/runs", { prompt: "Hi" });
  await piecesOf(own).until("Half");
  const taken = await going.app.recover({ limit: 1 });
  assertEquals(taken.runs, [run]);
  going.kill();
  const rest = await app.recover();
  assertEquals(rest.runs.length, 2);
  await advanceUntilSettled(time, rest.over);
});

Deno.test("recover() continues runs for their owners, with vars that are made for them", async () => {
  using time = new FakeTime();
  const among = shared();
  const owner = () => "ada";
  const { run, session } = await dead(among, { owner });
  await advance(time, lease);
  const greeting = agent({
    vars: vars<{ name: string }>(),
    model: (scope) => scripted(`Hello, ${scope.vars.name}!`),
  });
  const without = serve(greeting, { ...among, owner, vars: () => ({ name: "?" }) });
  await assertRejects(
    () => without.recover(),
    TypeError,
    "Cannot recover runs: their vars are made from requests; expected the option recoveryVars",
  );
  const asked: unknown[] = [];
  const errors: unknown[] = [];
  let fails = true;
  const app = serve(greeting, {
    ...among,
    owner,
    onError: (error) => errors.push(error),
    vars: () => ({ name: "?" }),
    recoveryVars(recovered) {
      asked.push(recovered);
      if (fails) throw new Error("no directory");
      return { name: recovered.owner ?? "" };
    },
  });
  assertEquals((await app.recover()).runs, []);
  assertEquals([errors.map(String), (await app.recover()).runs], [["Error: no directory"], []]);
  fails = false;
  await advance(time, lease);
  const { runs, over } = await app.recover();
  await advanceUntilSettled(time, over);
  assertEquals([runs, asked], [[run], [{ run, session, owner: "ada" }, { run, session, owner: "ada" }]]);
  const events = await eventsOf(app.request(`/runs/${run}`, { headers: { "last-event-id": "0" } }));
  assertEquals(endOf(events), ["run.finished", "Hello, ada!"]);
});

Deno.test("recover() leaves paused runs to a person, and finds nothing in the memory of a process", async () => {
  using time = new FakeTime();
  const among = shared();
  const drop = tool({ name: "drop", description: "", input: z.object({}), ask: true, execute: () => "ok" });
  const { app } = processOf(among, agent({ model: scripted({ calls: [["drop", {}]] }), tools: [drop] }));
  await eventsOf(post(app, "/runs", { prompt: "Hi" }));
  await advance(time, 10 * lease);
  assertEquals((await app.recover()).runs, []);
});

/** A process that dies when its model receives the prompt "kill". It answers other prompts after a second. */
function deadly(among: Shared, asked: string[], options: ServeOptions = {}): Process {
  const model: Model = {
    id: "deadly",
    async *stream({ messages }) {
      const [part] = messages[0]?.role === "user" ? messages[0].parts : [];
      const prompt = part?.type === "text" ? part.text : "";
      asked.push(prompt);
      if (prompt === "kill") process.kill();
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      yield [{ type: "text", text: prompt }, { type: "finish", reason: "stop" }];
    },
  };
  const process = processOf(among, agent({ model }), options);
  return process;
}

Deno.test("recover() ends a run that keeps dying after limits.recoveries, and the other runs end as usual", async () => {
  using time = new FakeTime();
  const among = shared();
  const prompts = ["one", "two", "kill", "three", "four"];
  const runs: string[] = [];
  for (const prompt of prompts) runs.push((await dead(among, {}, prompt)).run);
  const asked: string[] = [];
  for (let n = 0; n < 12; n++) {
    await advance(time, lease);
    const { app } = deadly(among, asked, { limits: { recoveries: 3 } });
    app.recover(); // its promise never settles in a process that dies
    await advance(time, 10_000);
  }
  assertEquals(asked.filter((prompt) => prompt === "kill").length, 3);
  const ends = await Promise.all(runs.map(async (run) => endOf(await recordOf(among.store, run))));
  assertEquals(ends, prompts.map((prompt) => ["run.finished", prompt === "kill" ? "recoveries" : prompt]));
  for (const run of runs) {
    const ids = (await recordOf(among.store, run)).map(({ id }) => id);
    assertEquals(ids, ids.map((_, index) => index + 1));
  }
});

Deno.test("recover() continues four runs at a time that have died before, also if it is called again meanwhile", async () => {
  using time = new FakeTime();
  const among = shared();
  const prompts = ["one", "two", "three", "four", "five", "six", "seven"];
  const runs: string[] = [];
  for (const prompt of prompts) runs.push((await dead(among, {}, prompt)).run);
  await advance(time, lease);
  const dying = processOf(among, agent({ model: stuck }));
  await dying.app.recover();
  dying.kill();
  await advance(time, lease);
  let [running, most] = [0, 0];
  const slow: Model = {
    id: "slow",
    async *stream() {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      running--;
      yield [{ type: "text", text: "Done." }, { type: "finish", reason: "stop" }];
    },
  };
  const { app } = processOf(among, agent({ model: slow }));
  const { runs: begun, over } = await app.recover();
  assertEquals([begun.length, begun.every((run) => runs.includes(run)), (await app.recover()).runs], [4, true, []]);
  await advanceUntilSettled(time, over);
  assertEquals(most, 4);
  for (const run of runs) assertEquals(endOf(await recordOf(among.store, run)), ["run.finished", "Done."]);
  const late = await dead(among, {}, "four");
  await advance(time, lease);
  const { runs: taken, over: end } = await app.recover();
  await advanceUntilSettled(time, end);
  assertEquals(taken, [late.run]);
});

for (const point of ["session", "abort"] as const) {
  Deno.test(`recover() ends a run whose hook at ${point} keeps killing the process, without running that hook again`, async () => {
    using time = new FakeTime();
    const among = shared();
    const { run, session } = await dead(among);
    let deaths = 0;
    for (let n = 0; n < 12; n++) {
      await advance(time, lease);
      let isDead = false;
      const killing: Middleware = {
        name: "killing",
        [point]() {
          if (!isDead) deaths++; // a dead process here still waits for its store, and reaches the time limit of its run
          isDead = true;
          process.kill();
          return new Promise<never>(() => {});
        },
      };
      const model = scripted("Never said.");
      const process = processOf(among, agent({ model, use: [killing] }), { limits: { recoveries: 3 } });
      process.app.recover(); // it does not settle where its process dies
      await advance(time, 10_000);
    }
    assertEquals(deaths, 4); // three recoveries, and the end
    const events = await recordOf(among.store, run);
    assertEquals(endOf(events), ["run.finished", "recoveries"]);
    assertEquals(events.map(({ id }) => id), events.map((_, index) => index + 1));
    assertEquals(storedRun(await among.store.load(session)), undefined);
  });
}

Deno.test("recover() ends no run if the store is down; the run continues after the next lease", async () => {
  using time = new FakeTime();
  const among = shared();
  const { run, session } = await dead(among);
  await advance(time, lease);
  let down = true;
  const store = durable(failingAppends(among.store, () => down));
  const model = scripted("Whole.", "Whole.", "Whole.");
  const { app } = processOf({ store }, agent({ model }), { onError() {} });
  assertEquals((await advanceUntilSettled(time, app.recover())).runs, []);
  await advanceUntilSettled(time, app.settled());
  assertEquals(storedRun(await among.store.load(session)), { id: run, status: "running" });
  down = false;
  await advance(time, lease);
  const { runs, over } = await app.recover();
  assertEquals(runs, [run]);
  await advanceUntilSettled(time, over);
  assertEquals(endOf(await recordOf(among.store, run)), ["run.finished", "Whole."]);
});

Deno.test("recover() does not clean up after a run that was handed over, although the store was down meanwhile", async () => {
  using time = new FakeTime();
  const among = shared();
  const closing = new AbortController();
  const one = processOf(among, agent({ model: stuck }), { signal: closing.signal, grace: 0 });
  const pieces = piecesOf(await post(one.app, "/runs", { prompt: "Hi" }));
  const { run } = first("run.started", framesOf(await pieces.until("Half")));
  closing.abort();
  await advanceUntilSettled(time, pieces.rest());
  let down = true;
  const store = durable(failingAppends(among.store, () => down));
  const reasons: string[] = [];
  const watch: Middleware = {
    name: "watch",
    async abort(ctx, next) {
      reasons.push(ctx.reason);
      await next();
    },
  };
  const assistant = agent({ model: scripted("Whole."), use: [watch] });
  const { app } = processOf({ store }, assistant, { onError() {} });
  assertEquals((await advanceUntilSettled(time, app.recover())).runs, []);
  await advanceUntilSettled(time, app.settled());
  down = false;
  await advance(time, lease);
  await advanceUntilSettled(time, app.recover().then(({ over }) => over));
  assertEquals([reasons, endOf(await recordOf(among.store, run))], [[], ["run.finished", "Whole."]]);
});

Deno.test("recover() runs no hook of a run whose claim the store refuses, and continues the others within its limit", async () => {
  using time = new FakeTime();
  const among = shared();
  const refused = await dead(among);
  const other = await dead(among);
  let refuses = true;
  const { key: refusedKey } = placeOf(refused.run) ?? {};
  const store = durable(failingAppends(among.store, (key) => refuses && key === refusedKey));
  const hooks: string[] = [];
  const watch: Middleware = {
    name: "watch",
    async session(ctx, next) {
      hooks.push(`session ${ctx.run.id}`);
      return await next();
    },
    async abort(ctx, next) {
      hooks.push(`abort ${ctx.run.id}`);
      await next();
    },
  };
  const assistant = agent({ model: scripted("Whole.", "Whole."), use: [watch] });
  const { app } = processOf({ store }, assistant, { onError() {} });
  const recover = async () => {
    await advance(time, lease);
    await advanceUntilSettled(time, app.recover({ limit: 1 }).then(({ over }) => over));
  };
  for (let calls = 0; calls < 4; calls++) await recover();
  assertEquals(hooks, [`abort ${other.run}`, `session ${other.run}`]);
  assertEquals(endOf(await recordOf(among.store, other.run)), ["run.finished", "Whole."]);
  refuses = false;
  await recover();
  assertEquals(hooks.slice(2), [`abort ${refused.run}`, `session ${refused.run}`]);
  assertEquals(endOf(await recordOf(among.store, refused.run)), ["run.finished", "Whole."]);
});

Deno.test("recover() continues other runs although those that were lost first cannot begin", async () => {
  using time = new FakeTime();
  const among = shared();
  const owners = ["ada", "bob", "cy"];
  const lost: string[] = [];
  for (const name of owners) {
    lost.push((await dead(among, { owner: () => name })).run);
    await advance(time, 1_000);
  }
  await advance(time, lease);
  const errors: unknown[] = [];
  const app = serve(agent({ model: scripted("Whole.") }), {
    ...among,
    onError: (error) => errors.push(String(error)),
    vars: () => ({}),
    recoveryVars({ owner }) {
      if (owner !== "cy") throw new Error(`no ${owner}`);
      return {};
    },
  });
  const taken: (readonly string[])[] = [];
  for (let calls = 0; calls < 2; calls++) {
    const { runs, over } = await app.recover({ limit: 2 });
    taken.push(runs);
    await advanceUntilSettled(time, over);
  }
  assertEquals([taken, errors], [[[], lost.slice(2)], ["Error: no ada", "Error: no bob"]]);
});

for (const [named, store] of [["in memory", memory()], ["of a durable store", durable(memory().journal)]] as const) {
  Deno.test(`recover() ${named} refuses a limit that is not a whole number of at least 1`, async () => {
    const app = serve(agent({ model: scripted() }), { store });
    for (const limit of [1.5, Infinity, NaN, 0, -1]) {
      await assertRejects(
        () => app.recover({ limit }),
        RangeError,
        `Cannot recover runs: \`limit\` is ${limit}; expected a whole number of at least 1`,
      );
    }
    assertEquals((await app.recover({ limit: 1 })).runs, []);
  });
}
