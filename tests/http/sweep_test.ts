/**
 * Sweeps of a server: what is not kept any more is deleted, and nothing else.
 */
import { agent, memory, serve, type ServeOptions, type Store } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { migrate, sqliteStore } from "@jizai/jizai/session/sqlite";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { DatabaseSync } from "node:sqlite";
import { user } from "@jizai/jizai";
import { Chat, texts } from "../support/chat.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { eventsOf, first, post, refusalOf } from "../support/requests.ts";

const [hour, day] = [3_600_000, 86_400_000];

/** A server, and the limits of the sweeps of its store. */
function served(options: ServeOptions = {}, store: Store = durable(memory().journal)) {
  const limits: number[] = [];
  const { journal } = store;
  const counted = durable({
    ...journal,
    sweep(limit, keep) {
      limits.push(limit);
      return journal.sweep(limit, keep);
    },
  });
  const app = serve(agent({ model: scripted(...Array.from({ length: 9 }, (_, index) => `${index}.`)) }), {
    store: counted,
    ...options,
  });
  return { app, store, limits };
}

Deno.test("sweep() deletes the events of runs a day after their end, and no message", async () => {
  using time = new FakeTime();
  const { app } = served();
  const { run, session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Hi" })));
  time.tick(day - hour);
  const later = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Hi" })));
  assertEquals(await app.sweep(), 0);
  const all = await eventsOf(app.request(`/runs/${run}`));
  time.tick(hour);
  assertEquals([await app.sweep(), await app.sweep()], [1, 0]);
  assertEquals((await refusalOf(app.request(`/runs/${run}`)))[0], 410);
  assertEquals((await app.request(`/runs/${run}?after=${all.length}`)).status, 204); // it has them all
  assertEquals((await eventsOf(app.request(`/runs/${later.run}`))).length, all.length);
  assertEquals((await (await app.request(`/sessions/${session}`)).json()).messages.length, 2);
  const next = await eventsOf(post(app, "/runs", { prompt: "More", session }));
  assertEquals([first("run.started", next).session, next.at(-1)?.type], [session, "run.finished"]);
});

Deno.test("a page of useChat that is opened after its events were swept has nothing to resume", async () => {
  using time = new FakeTime();
  const { app } = served({ wires: [aiSdkUi(), aiSdkMessages()], onClientGone: "detach" });
  await new Chat(app).sendMessage({ text: "Hi" });
  time.tick(day);
  await app.sweep();
  assertEquals((await app.request("/chat/chat/stream")).status, 204);
  const page = new Chat(app, { messages: await (await app.request("/chat/chat")).json() });
  await page.resumeStream();
  await page.sendMessage({ text: "More" });
  assertEquals([page.error, texts(page)], [undefined, ["user Hi", "assistant 0.", "user More", "assistant 1."]]);
});

Deno.test("sweep() keeps events as long as `events.keep` says, and idempotency keys too", async () => {
  using time = new FakeTime();
  const keep = 60 * day;
  const { app } = served({ events: { keep } });
  const send = () => eventsOf(post(app, "/runs", { prompt: "Hi" }, { "idempotency-key": "k" }));
  const events = await send();
  time.tick(keep - 1);
  assertEquals([await app.sweep(), await send()], [0, events]);
  time.tick(1);
  assertEquals(await app.sweep(), 2); // the events, and the key
  assertEquals((await send()).length, events.length);
});

Deno.test("sweep() drains what has expired in small steps, on SQLite", async () => {
  using time = new FakeTime();
  const database = new DatabaseSync(":memory:");
  migrate(database);
  const { app, store, limits } = served({}, sqliteStore(database, { expireIn: day }));
  for (let number = 0; number < 25; number++) {
    await store.save({ id: `${number}`, version: 0, messages: [user("Hi")] });
  }
  time.tick(day);
  await store.save({ id: "new", version: 0, messages: [user("Hi")] });
  assertEquals([await app.sweep({ limit: 10 }), limits], [25, [10, 10, 10]]);
  const rows = ["jizai_journal", "jizai_journal_entry"].map((table) =>
    database.prepare(`SELECT count(*) AS rows FROM ${table}`).get()?.rows
  );
  assertEquals([rows, await store.list()], [[1, 1], ["new"]]);
});

Deno.test("a run sweeps one step after its end, once a minute", async () => {
  using time = new FakeTime();
  const { app, limits } = served({ events: { keep: hour } });
  const run = async () => {
    await eventsOf(post(app, "/runs", { prompt: "Hi" }));
    await app.settled();
  };
  await run();
  assertEquals(limits, []);
  time.tick(hour);
  for (let times = 0; times < 2; times++) await run();
  assertEquals(limits, [100]);
  time.tick(60_000);
  await run();
  assertEquals(limits, [100, 100]);
  assertEquals(await app.sweep(), 0);
});

Deno.test("a step of a sweep has no deadline, and is not reported as slow", async () => {
  using time = new FakeTime();
  const { journal } = memory();
  const errors: unknown[] = [];
  const sweep = () => new Promise<number>((resolve) => setTimeout(() => resolve(7), 600_000));
  const { app } = served({ onError: (error) => void errors.push(error) }, durable({ ...journal, sweep }));
  assertEquals([await advanceUntilSettled(time, app.sweep()), errors], [7, []]);
});

Deno.test("sweep() ends when the server shuts down, and refuses a limit that is no number of journals", async () => {
  const closing = new AbortController();
  const { app, limits } = served({ signal: closing.signal });
  await assertRejects(() => app.sweep({ limit: 0 }), RangeError, "Cannot sweep: `limit` is 0; expected");
  closing.abort();
  assertEquals([await app.sweep(), limits], [0, []]);
});
