import { agent, memory, serve, type Store } from "@jizai/jizai";
import { durable } from "@jizai/jizai/session/durable";
import { migrate, sqliteStore } from "@jizai/jizai/session/sqlite";
import { scripted } from "@jizai/jizai/model/scripted";
import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { DatabaseSync } from "node:sqlite";
import { journalKey, runIdOf } from "../../src/core/journal.ts";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { waiting } from "../support/halting.ts";
import { recordOf } from "../support/events_journal.ts";
import { processOf } from "../support/process.ts";
import { first, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";

const lease = 30_000;

/** Begins a run in a process that dies in the middle of the answer. Returns its session. */
async function dead(store: Store): Promise<string> {
  const process = processOf({ store }, agent({ model: waiting("Half") }));
  const text = await piecesOf(await post(process.app, "/runs", { prompt: "Hi" })).until("Half");
  process.kill();
  return first("run.started", framesOf(text)).session;
}

/** Changes the head of a stored session. */
type Damage = (head: string) => string;

const changed = (
  change: (head: { run: { position: object } & Record<string, unknown> } & Record<string, unknown>) => unknown,
): Damage =>
(head) => JSON.stringify(change(JSON.parse(head)));

const damages: Readonly<Record<string, Damage>> = {
  "cut JSON": (head) => head.slice(0, -20),
  "no text": () => "",
  "null": () => "null",
  "a list": () => "[]",
  "a newer format": changed((head) => ({ ...head, format: 99 })),
  "a newer format of another shape": () => '{"format":99,"run":5,"mail":{},"state":{"$entry":9999}}',
  "a newer position": changed((head) => ({ ...head, run: { ...head.run, position: { at: "dreaming" } } })),
  "no position": changed(({ run, ...head }) => ({ ...head, run: { ...run, position: undefined } })),
  "a run that is a number": changed((head) => ({ ...head, run: 5 })),
  "state that is no list": changed((head) => ({ ...head, run: { ...head.run, state: {} } })),
  "answers that are no list": changed((head) => ({ ...head, run: { ...head.run, answers: "none" } })),
  "a lease that is a number": changed((head) => ({ ...head, lease: 5 })),
  "a reference to a missing entry": changed((head) => ({ ...head, extra: { $entry: 9_999 } })),
};

for (const [name, damage] of Object.entries(damages)) {
  Deno.test(`recover() reports a session with ${name} once, leaves it alone and continues the others`, async () => {
    using time = new FakeTime();
    const kept = durable(memory().journal);
    const [bad, good] = [await dead(kept), await dead(kept)];
    const { journal } = kept;
    const key = journalKey(undefined, bad);
    const spoil = <S extends { readonly head: string }>(of: string, stored: S | undefined) =>
      stored && (of === key ? { ...stored, head: damage(stored.head) } : stored);
    const saved: string[] = [];
    const store = durable({
      ...journal,
      head: async (of) => spoil(of, await journal.head(of)),
      open: async (of) => spoil(of, await journal.open(of)),
      append: (of, append) => (saved.push(of), journal.append(of, append)),
    });
    await advance(time, lease);
    const errors: unknown[] = [];
    const app = serve(agent({ model: scripted("Done.") }), { store, onError: (error) => errors.push(error) });
    const before = await journal.head(key);
    for (let calls = 0; calls < 3; calls++) {
      await advanceUntilSettled(time, app.recover().then(({ over }) => over));
    }
    assertEquals([errors.length, String(errors[0]).includes(bad)], [1, true]);
    assertEquals((await kept.load(good))?.messages.length, 2);
    for (
      const send of [
        () => post(app, "/runs", { prompt: "And?", session: bad }),
        () => post(app, "/runs", { prompt: "And?", session: bad }),
        () => app.request(`/sessions/${bad}`),
        () => post(app, `/sessions/${bad}/answers`, { answers: [] }),
      ]
    ) {
      const [status, error] = await refusalOf(send());
      const { id: _, ...rest } = Object(error);
      assertEquals([status, rest], [500, {
        code: "unreadable",
        message: "Cannot read the session: it is damaged, or a newer version of the server has saved it",
      }]);
    }
    assertEquals([await journal.head(key), saved.includes(key)], [before, false]);
  });
}

Deno.test("a session in SQLite whose entries are missing is unreadable, and not empty", async () => {
  using database = new DatabaseSync(":memory:");
  migrate(database);
  const store = sqliteStore(database);
  await agent({ model: scripted("Hello.") }).run({ prompt: "Hi", session: "s", store }).result;
  const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%entry%'").all();
  for (const { name } of tables) database.exec(`DELETE FROM ${name}`);
  const app = serve(agent({ model: scripted("Again.") }), { store, onError() {} });
  const [status, error] = await refusalOf(app.request("/sessions/s"));
  assertEquals([tables.length > 0, status, Object(error).code], [true, 500, "unreadable"]);
});

/** Changes a line of a logged record. */
const lineDamages: Readonly<Record<string, (line: string) => string>> = {
  "cut lines": (line) => line.slice(0, -10),
  "lines that are null": () => "null",
  "empty lines": () => "",
  "binary lines": () => "\0\0\0",
  "a cut start": (line) => line.startsWith(`{"type":"run.started"`) ? line.slice(0, -5) : line,
  "a cut end": (line) => /^\{"type":"run.(paused|finished)"/.test(line) ? line.slice(0, -5) : line,
  "lists": (line) => `[${line}]`,
  "lines that are cut after an inner object": () => `{"type":"data","data":{"a":1}`,
  "a start that is no JSON": (line) => line.startsWith(`{"type":"run.started"`) ? `${line.slice(0, -1)},}` : line,
};

/** Returns a store in which the record of `bad.run` has damaged lines. */
function damagedStore({ journal }: Store, damage: (line: string) => string, bad: { run?: string }): Store {
  return durable({
    ...journal,
    async read(key, run, after) {
      const page = await journal.read(key, run, after);
      const isBad = bad.run === runIdOf({ key, run });
      return page && isBad ? { ...page, lines: page.lines.map(damage) } : page;
    },
  });
}

const unreadableRecord = {
  code: "unreadable",
  message: "Cannot read the record of the run: it is damaged, or a newer version of the server has saved it",
};

for (const [name, damage] of Object.entries(lineDamages)) {
  Deno.test(`a record with ${name} is unreadable, and no client receives its lines`, async () => {
    const bad: { run?: string } = {};
    const kept = durable(memory().journal);
    const store = damagedStore(kept, damage, bad);
    const errors: unknown[] = [];
    const onError = (error: unknown) => void errors.push(error);
    const make = () => serve(agent({ model: scripted("Done.", "Done.") }), { store, wires: [aiSdkUi()], onError });
    const started = [];
    for (const prompt of ["One", "Two"]) {
      started.push(first("run.started", framesOf(await (await post(make(), "/runs", { prompt })).text())));
    }
    const [{ run, session }, good] = started as [typeof started[0], typeof started[0]];
    bad.run = run;
    const app = make();
    const requests: readonly (() => Response | Promise<Response>)[] = [
      () => app.request(`/runs/${run}`),
      ...name === "a cut end" ? [() => app.request(`/runs/${run}`, { headers: { "last-event-id": "5" } })] : [],
    ];
    for (const send of requests) {
      const [status, { id: _, ...error }] = await refusalOf(send()) as [number, { id?: string }];
      assertEquals([status, error], [500, unreadableRecord]);
    }
    assertEquals(
      errors.map(String),
      requests.map(() => `UnreadableError: Cannot read the record of run "${run}": an event is damaged`),
    );
    assertEquals((await app.request(`/sessions/${session}`)).status, 200);
    assertEquals((await post(app, `/runs/${run}/stop`, {})).status, 204); // the session tells that it has ended
    assertEquals((await post(app, `/runs/${run}/messages`, { text: "Hi" })).status, 404);
    const stored = await recordOf(kept, run);
    const next = await post(app, "/runs", { prompt: "And?", session });
    assertEquals(framesOf(await next.text()).at(-1)?.type, "run.finished"); // the session goes on
    assertEquals(await recordOf(kept, run), stored);
    assertEquals(framesOf(await (await app.request(`/runs/${good.run}`)).text()).at(-1)?.type, "run.finished");
  });
}

Deno.test("recover() continues lost runs, also one whose record is damaged", async () => {
  using time = new FakeTime();
  const bad: { run?: string } = {};
  const kept = durable(memory().journal);
  const store = damagedStore(kept, (line) => line.slice(0, -1), bad);
  const runs = [];
  for (let count = 0; count < 3; count++) {
    const process = processOf({ store: kept }, agent({ model: waiting("Half") }));
    const text = await piecesOf(await post(process.app, "/runs", { prompt: "Hi" })).until("Half");
    process.kill();
    runs.push(first("run.started", framesOf(text)));
  }
  bad.run = runs[0]?.run ?? "";
  await advance(time, lease);
  const errors: unknown[] = [];
  const app = serve(agent({ model: scripted("Done.", "Done.", "Done.") }), {
    store,
    onError: (error) => void errors.push(error),
  });
  await advanceUntilSettled(time, app.recover().then(({ over }) => over));
  for (const { session } of runs) assertEquals((await store.load(session))?.messages.length, 2);
  assertEquals(errors, []); // nothing reads the events
});
