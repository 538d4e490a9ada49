import { assert, assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { agent, serve, type ServeOptions, type Store, user } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durableObjectStore, type ObjectStorage } from "@jizai/jizai/session/durable_object";
import { journalLaws } from "@jizai/jizai/testing";
import { journalKey } from "../../src/core/journal.ts";
import { advance } from "../support/fake_time.ts";
import { post } from "../support/requests.ts";
import { storage } from "../support/sql.ts";
import { checkLeasedExpiry, expireIn } from "../support/leased_expiry.ts";

/** A session with a text per letter, each 100 KB in a piece of its own. */
function sessionOf(version: number, ...letters: readonly string[]) {
  return { id: "s", version, messages: [user(letters.map((letter) => letter.repeat(100_000)).join(""))] };
}

/** Returns the number of rows of each table. */
function rows({ sql }: ObjectStorage): readonly number[] {
  return [...sql.exec("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
    .flatMap(({ name }) => [...sql.exec(`SELECT count(*) AS rows FROM ${name}`)].map(({ rows }) => Number(rows)));
}

/** Returns the number of rows written so far. */
function written({ sql }: ObjectStorage): number {
  const [row] = sql.exec("SELECT total_changes() AS rows");
  return Number(row?.rows);
}

Deno.test("durableObjectStore() keeps the laws of journals", async () => {
  using time = new FakeTime();
  const make = (options: { expireIn?: number }) => {
    const disk = storage();
    return [1, 2, 3].map(() => durableObjectStore(disk, options).journal);
  };
  await journalLaws(make, { pass: (ms) => time.tick(ms) });
});

Deno.test("durableObjectStore() writes a row for the session, and one for what is new", async () => {
  const disk = storage();
  const store = durableObjectStore(disk);
  const { messages } = sessionOf(0, "a", "b", "c");
  await store.save({ id: "s", version: 0, messages });
  const before = written(disk);
  await store.save({ id: "s", version: 1, messages: [...messages, user("d"), user("e")] });
  assertEquals(written(disk) - before, 2);
});

/** Begins a run with two events in the session. */
async function addEvents({ journal }: Store): Promise<void> {
  const key = journalKey(undefined, "s");
  const head = await journal.head(key);
  assert(head);
  const change = { run: 1, state: "over" as const, base: 1, waiting: 0, head: "{}", last: head.last, entries: [] };
  const events = { first: 1, lines: ["1", "2"] };
  await journal.append(key, { from: head.mark, to: { holder: "run", n: head.mark.n + 1 }, change, events });
}

Deno.test("durableObjectStore() removes deleted rows, with the events of runs", async () => {
  const disk = storage();
  const store = durableObjectStore(disk);
  await store.save(sessionOf(0, "a", "b"));
  await addEvents(store);
  assertEquals(rows(disk), [1, 1, 3, 1]);
  await store.delete("s");
  assertEquals(rows(disk), [0, 0, 0, 0]);
});

Deno.test("durableObjectStore() keeps a session while its run renews the lease, and deletes it after that", async () => {
  using time = new FakeTime();
  await checkLeasedExpiry(durableObjectStore(storage(), { expireIn }), time);
});

Deno.test("sweep() of durableObjectStore() removes expired rows, with the events of runs", async () => {
  using time = new FakeTime();
  const disk = storage();
  const store = durableObjectStore(disk, { expireIn: 1_000 });
  await store.save(sessionOf(0, "a", "b"));
  await addEvents(store);
  time.tick(999);
  const { journal } = durableObjectStore(disk, { expireIn: 1_000 });
  assertEquals([await journal.sweep(9, 60_000), rows(disk)], [0, [1, 1, 3, 1]]);
  time.tick(1);
  assertEquals([await journal.sweep(9, 60_000), rows(disk)], [1, [0, 0, 0, 0]]);
});

Deno.test("durableObjectStore() stores a session completely or not at all", async () => {
  const disk = storage();
  const store = durableObjectStore(disk);
  await store.save(sessionOf(0, "a"));
  const failing = durableObjectStore({
    transactionSync: disk.transactionSync,
    sql: {
      exec(query, ...bindings) {
        if (query.includes("INTO jizai_journal_entry") && bindings[3] === 1) throw new Error("disk full");
        return disk.sql.exec(query, ...bindings);
      },
    },
  });
  await assertRejects(() => failing.save(sessionOf(1, "b", "c")), Error, "disk full");
  assertEquals(await store.load("s"), sessionOf(1, "a"));
});

const day = 86_400_000;

/** Opens a store with an alarm, whose times are recorded. `Infinity`: the alarm was deleted. */
function alarmedStore(disk = storage()) {
  const alarms: number[] = [];
  const alarm = {
    setAlarm: (at: number) => Promise.resolve(void alarms.push(at)),
    deleteAlarm: () => Promise.resolve(void alarms.push(Infinity)),
  };
  return { alarms, store: durableObjectStore(disk, { alarm }) };
}

/** Renews the lease of a session. */
async function renew({ journal }: Store, id: string, due: number): Promise<void> {
  const key = journalKey(undefined, id);
  const { mark } = await journal.head(key) ?? {};
  await journal.append(key, { from: mark, to: { holder: "renewal", n: (mark?.n ?? 0) + 1 }, due });
}

Deno.test("durableObjectStore() sets the alarm once for each lease, and deletes it with the last one", async () => {
  using time = new FakeTime(0);
  const { alarms, store } = alarmedStore();
  const leased = (id: string, version: number) => ({
    ...sessionOf(version, "a"),
    id,
    lease: { until: Date.now() + 300 },
  });
  await store.save(sessionOf(0, "a"));
  await store.save(leased("s", 1));
  await store.save(leased("other", 0));
  time.tick(100);
  await store.save(leased("s", 2));
  await renew(store, "other", 400);
  assertEquals(alarms, [300]);
  time.tick(300);
  await renew(store, "other", 300);
  assertEquals(alarms, [300, 700]);
  await store.save({ ...sessionOf(3, "a"), id: "s" });
  assertEquals(alarms, [300, 700]);
  await store.delete("other");
  assertEquals(alarms, [300, 700, Infinity]);
});

/** Serves an agent from a Durable Object, and records its alarms. `Infinity`: the alarm was deleted. */
function objectOf(
  disk: ObjectStorage,
  options: Pick<ServeOptions, "onEnd" | "singleProcess">,
  before?: () => Promise<void>,
) {
  const { alarms, store } = alarmedStore(disk);
  const model = scripted({ text: "Hello!", ...(before && { before }) });
  return { alarms, app: serve(agent({ model }), { store, lease: 900, ...options }) };
}

Deno.test("the alarm of durableObjectStore() rings at the end of a run's lease, with and without onEnd", async () => {
  using _time = new FakeTime(0);
  for (const options of [{}, { onEnd: () => {} }]) {
    const gate = Promise.withResolvers<void>();
    const { alarms, app } = objectOf(storage(), options, () => gate.promise);
    await (await post(app, "/runs", { prompt: "Hi" }, { prefer: "respond-async" })).json();
    assertEquals(alarms.at(-1), 900);
    gate.resolve();
    await app.settled();
    assertEquals(alarms.at(-1), day); // its events are swept then
  }
});

Deno.test("durableObjectStore() sets the alarm for the first lease after it rings, also if an ended lease is found", async () => {
  using time = new FakeTime(0);
  const { alarms, store } = alarmedStore();
  for (const [id, until] of [["report", 300], ["run", 900], ["late", 1_200]] as const) {
    await store.save({ ...sessionOf(0, "a"), id, lease: { until } });
  }
  const due = async (limit: number) => await store.journal.pending(limit);
  const [report, run, late] = ["report", "run", "late"].map((id) => journalKey(undefined, id));
  time.tick(300);
  assertEquals([await due(10), alarms], [[report], [300, 900]]);
  time.tick(600);
  assertEquals([await due(1), alarms], [[report], [300, 900, 1_200]]);
  time.tick(300);
  assertEquals([await due(10), alarms], [[report, run, late], [300, 900, 1_200]]); // not in a loop
});

Deno.test("recover() of a single process leaves the alarm of durableObjectStore() set while a run lives", async () => {
  using time = new FakeTime(0);
  const gate = Promise.withResolvers<void>();
  const { alarms, app } = objectOf(storage(), { singleProcess: true }, () => gate.promise);
  const { run } = await (await post(app, "/runs", { prompt: "Hi" }, { prefer: "respond-async" })).json();
  for (let step = 0; step < 9; step++) await advance(time, 100);
  assertEquals([Date.now(), alarms], [900, [900, 1_800]]); // the run has renewed its lease each third of it
  await app.recover();
  assertEquals(alarms, [900, 1_800]);
  await post(app, `/runs/${run}/stop`);
  gate.resolve();
  await app.settled();
  assertEquals(alarms.at(-1), Date.now() + day);
});

Deno.test("the alarm of durableObjectStore() rings when events are to be swept, and a session that has expired", async () => {
  using time = new FakeTime(0);
  const disk = storage();
  const alarms: number[] = [];
  const alarm = {
    setAlarm: (at: number) => Promise.resolve(void alarms.push(at)),
    deleteAlarm: () => Promise.resolve(void alarms.push(Infinity)),
  };
  /** Starts the object, whose alarm sweeps. */
  const start = () => {
    const store = durableObjectStore(disk, { alarm, expireIn: 9 * day });
    return serve(agent({ model: scripted("Hello!") }), { store, events: { keep: 3 * day }, singleProcess: true });
  };
  const ring = async () => {
    time.tick((alarms.at(-1) ?? 0) - Date.now());
    const app = start();
    await app.recover().then(({ over }) => over);
    return await app.sweep();
  };
  const first = start();
  await (await post(first, "/runs", { prompt: "Hi" })).text();
  await first.settled();
  assertEquals(alarms.at(-1), day); // the default, until the first sweep
  assertEquals([await ring(), alarms.at(-1)], [0, 3 * day]);
  assertEquals([await ring(), alarms.at(-1)], [1, 9 * day]);
  const { length } = alarms;
  assertEquals([await ring(), rows(disk), alarms.slice(length)], [1, [0, 0, 0, 0], []]); // it does not ring again
});

Deno.test("the alarm of durableObjectStore() rings again for a report that is due later", async () => {
  using time = new FakeTime(0);
  const disk = storage();
  const reporting = Promise.withResolvers<void>();
  const killed = objectOf(disk, { onEnd: () => (reporting.resolve(), new Promise<void>(() => {})) }); // the process dies in it
  await (await post(killed.app, "/runs", { prompt: "Hi" })).text();
  await reporting.promise;
  assertEquals(killed.alarms, [3_600, 900]);
  const ends: string[] = [];
  const next = objectOf(disk, { onEnd: ({ event }) => void ends.push(event.type) });
  for (const at of [900, 3_600]) {
    time.tick(at - Date.now());
    await next.app.recover().then(({ over }) => over);
  }
  assertEquals([next.alarms, ends], [[3_600, 4_500, day], ["run.finished"]]);
});
