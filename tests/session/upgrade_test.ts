/**
 * Upgrades and ways back: a database that was recorded before is continued by this version, and a process leaves alone what a newer one has written.
 */
import { serve, type ServedApp, type ServeOptions, type Store } from "@jizai/jizai";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { migrate, sqliteStore } from "@jizai/jizai/session/sqlite";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { DatabaseSync } from "node:sqlite";
import { journalKey } from "../../src/core/journal.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { recordedAssistant } from "../support/recorded_assistant.ts";
import { eventsOf, first, type Framed, post, refusalOf } from "../support/requests.ts";
import { lines } from "../support/transcript_lines.ts";

const recorded = await Deno.readTextFile("tests/support/recorded_journals.sql");

/** The time at which the database was recorded: before the lease of its lost run ends. */
const recordedAt = 1_800_000_060_000;
const owner = "guest";

/** Opens the recorded database as a process of this version does. */
function open(): { readonly database: DatabaseSync; readonly store: Store } {
  const database = new DatabaseSync(":memory:");
  database.exec(recorded);
  migrate(database);
  return { database, store: sqliteStore(database) };
}

/** Serves the agent of the recorded sessions. */
function served(store: Store, script: readonly ScriptedAnswer[] = [], options: ServeOptions = {}) {
  return serve(recordedAssistant(scripted(...script)), {
    store,
    owner: () => owner,
    session: (c) => c.req.query("s"),
    onClientGone: "detach",
    ...options,
  });
}

/** Returns the messages of a session, one a line. */
async function linesOf(store: Store, id: string): Promise<readonly string[]> {
  return lines((await store.load(id, { owner }))?.messages ?? []);
}

/** Returns the number of rows of each table. */
function rows(database: DatabaseSync): readonly number[] {
  return ["", "_entry", "_event", "_ended"].map((table) =>
    Number(database.prepare(`SELECT count(*) AS rows FROM jizai_journal${table}`).get()?.rows)
  );
}

/** Reads the events of a run to its end, and until they are packed. */
async function whole(app: ServedApp, response: Promise<Response>): Promise<readonly Framed[]> {
  const events = await eventsOf(response);
  await app.settled();
  return events;
}

const answer = (app: ServedApp, session: string, ...answers: readonly object[]) =>
  whole(app, post(app, `/sessions/${session}/answers`, { answers }));
const prompt = (app: ServedApp, session: string) => whole(app, post(app, `/runs?s=${session}`, { prompt: "More?" }));

Deno.test("this version reads the recorded sessions, their history and their events", async () => {
  using _ = new FakeTime(recordedAt);
  const { store } = open();
  const app = served(store);
  assertEquals(await store.list({ owner }), ["checking", "choosing", "compacted", "finished", "lost", "paused"]);
  assertEquals(await linesOf(store, "finished"), [
    "user Hi",
    "assistant Hello.",
    "user Look",
    "call look",
    "ok Seen x",
    "assistant Today it is sunny.",
  ]);
  assertEquals((await linesOf(store, "compacted")).length, 5);
  assertEquals((await store.history("compacted", { owner }))?.messages.length, 6);
  assertEquals([await linesOf(store, "choosing"), await linesOf(store, "checking")], [[], []]);
  const key = journalKey(owner, "finished");
  const events = await eventsOf(app.request(`/runs/${key}-2`));
  assertEquals(events.map(({ id }) => id), Array.from({ length: 25 }, (_, index) => index + 1));
  const deltas = events.flatMap((event) => event.type === "text.delta" ? [event.text] : []);
  assertEquals([deltas, events.at(-1)?.type], [["To", "day ", "it is ", "sun", "ny."], "run.finished"]);
  const again = post(app, "/runs?s=finished", { prompt: "Look" }, { "idempotency-key": "k1" });
  assertEquals(await eventsOf(again), events); // the request is recognized
});

Deno.test("this version continues the recorded runs: paused ones, also in format 2, and one whose process has died", async () => {
  using time = new FakeTime(recordedAt);
  const { store } = open();
  const ends: string[] = [];
  const options: ServeOptions = { onEnd: ({ session, event }) => void ends.push(`${session} ${event.type}`) };
  const paid = await answer(served(store, ["Paid."]), "paused", { callId: "call_1", type: "approve" });
  assertEquals(paid.at(-1)?.type, "run.finished");
  for (const session of ["choosing", "checking"]) {
    const events = await answer(served(store, [`${session}.`]), session, { type: "reply", text: "Yes" });
    assertEquals(first("run.finished", events).text, `${session}.`);
  }
  time.tick(60_000);
  const app = served(store, ["Recovered."], options);
  const { runs, over } = await app.recover();
  await advanceUntilSettled(time, over);
  await advanceUntilSettled(time, app.settled());
  assertEquals([runs.length, await linesOf(store, "lost")], [1, [
    "user Wait",
    "assistant I wait.",
    "call look wait",
    "ok Seen z",
    "ok Waited for rain",
    "user By the way",
    "assistant Recovered.",
  ]]);
  assertEquals(ends, ["lost run.finished"]);
  for (const session of ["finished", "compacted"]) {
    const events = await prompt(served(store, ["More."]), session);
    assertEquals(first("run.finished", events).text, "More.");
  }
});

Deno.test("this version sweeps and deletes what was recorded", async () => {
  using time = new FakeTime(recordedAt);
  const { database, store } = open();
  const app = served(store);
  const [, , events = 0] = rows(database);
  time.tick(86_400_000);
  assertEquals(await app.sweep(), 2); // the idempotency keys; the version before has not noted which runs are over
  await prompt(served(store, ["More."]), "finished");
  time.tick(86_400_000);
  await app.sweep();
  assertEquals((rows(database).at(2) ?? 0) < events, true);
  for (const session of await store.list({ owner })) await app.deleteSession(session, { owner });
  assertEquals(rows(database), [0, 0, 0, 0]);
});

Deno.test("a session stays in format 1 where an earlier version can continue it", async () => {
  using _ = new FakeTime(recordedAt);
  const { database, store } = open();
  const formats = () =>
    database.prepare("SELECT session, substr(head, 11, 1) AS format FROM jizai_journal WHERE session IS NOT NULL").all()
      .map(({ session, format }) => `${session} ${format}`).toSorted();
  const before = ["checking 2", "choosing 2", "compacted 1", "finished 1", "lost 1", "paused 1"];
  assertEquals(formats(), before);
  await answer(served(store, ["Done."]), "checking", { type: "reply", text: "Yes" });
  await answer(served(store, [{ calls: [["pay", { of: "more" }]] }]), "paused", { callId: "call_1", type: "approve" });
  assertEquals(formats(), ["checking 1", ...before.slice(1)]);
});

Deno.test("a process leaves the session of a newer format to newer processes, and continues the others", async () => {
  using time = new FakeTime(recordedAt);
  const { database, store } = open();
  const headOf = () => database.prepare("SELECT * FROM jizai_journal WHERE session = 'lost'").get();
  const change = (from: string, to: string) =>
    database.prepare("UPDATE jizai_journal SET head = replace(head, ?, ?) WHERE session = 'lost'").run(from, to);
  change('{"format":1', '{"format":4');
  const newer = headOf();
  const errors: string[] = [];
  const app = served(store, ["Paid."], { onError: (error) => void errors.push(String(error)) });
  time.tick(60_000);
  for (let times = 0; times < 2; times++) {
    const { runs, over } = await app.recover();
    await over;
    assertEquals(runs, []);
  }
  const unreadable = 'UnreadableError: Cannot read session "lost": a newer version of the package has written it, ' +
    "in format 4; expected 3 or lower";
  assertEquals(errors, [unreadable]); // once
  for (const request of [app.request("/sessions/lost"), post(app, "/runs?s=lost", { prompt: "Hi" })]) {
    const [status, { code }] = await refusalOf(request) as unknown as [number, { readonly code: string }]; // a failure has an id
    assertEquals([status, code], [500, "unreadable"]);
  }
  await answer(app, "paused", { callId: "call_1", type: "approve" });
  await app.sweep();
  assertEquals([headOf(), (await linesOf(store, "paused")).at(-1)], [newer, "assistant Paid."]);
  change('{"format":4', '{"format":1'); // the newer process gives it back
  const other = served(store, ["Recovered."]);
  const { runs, over } = await other.recover();
  await advanceUntilSettled(time, over);
  await advanceUntilSettled(time, other.settled());
  assertEquals([runs.length, (await linesOf(store, "lost")).at(-1)], [1, "assistant Recovered."]);
});
