/**
 * Deltas in the journal of a database wait for those that follow.
 */
import { agent, memory, type Model, serve, type Store, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { migrate, sqliteStore } from "@jizai/jizai/session/sqlite";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { DatabaseSync } from "node:sqlite";
import * as z from "zod";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { typesIn, watchedEvents } from "../support/events_journal.ts";
import { eventsOf, post } from "../support/requests.ts";

/** A model that answers with `count` words, `every` milliseconds apart. */
function wordsOf(count: number, every: number): Model {
  return {
    id: "words",
    async *stream() {
      for (let word = 0; word < count; word++) {
        if (word > 0) await new Promise((resolve) => setTimeout(resolve, every));
        yield [{ type: "text" as const, text: `${word} ` }];
      }
      yield [{ type: "finish" as const, reason: "stop" as const, usage: { input: 1, output: count } }];
    },
  };
}

/** A store, and the types of the events of each append. */
function watched(store: Store) {
  const { journal, appends } = watchedEvents(store);
  return { store: { ...store, journal }, additions: () => appends.map(typesIn) };
}

function sqlite(options = {}): Store {
  const database = new DatabaseSync(":memory:");
  migrate(database);
  return sqliteStore(database, options);
}

/** Returns how many additions contain deltas, and how many deltas there are. */
function counted(additions: readonly (readonly string[])[]): readonly [number, number] {
  const deltas = additions.map((types) => types.filter((type) => type === "text.delta").length).filter((count) =>
    count > 0
  );
  return [deltas.length, deltas.reduce((sum, count) => sum + count, 0)];
}

Deno.test("200 words, 20 ms apart, are stored in at most 60 additions, and without deltasEvery in many", async () => {
  const cases = [[{}, 30, 60], [{ deltasEvery: 250 }, 12, 25], [{ deltasEvery: 0 }, 90, 200]] as const;
  for (const [options, least, most] of cases) {
    using time = new FakeTime();
    const { store, additions } = watched(sqlite(options));
    const app = serve(agent({ model: wordsOf(200, 20) }), { store });
    const events = await advanceUntilSettled(time, eventsOf(post(app, "/runs", { prompt: "Hi" })));
    await app.settled();
    assertEquals(events.filter(({ type }) => type === "text.delta").length, 200);
    assertEquals(events.map(({ id }) => id), events.map((_, index) => index + 1));
    const [batches, deltas] = counted(additions());
    assertEquals([deltas, batches >= least && batches <= most], [200, true], `It makes ${batches} additions`);
  }
});

Deno.test("the first delta, and an event that is no delta, do not wait", async () => {
  using time = new FakeTime();
  const { store, additions } = watched(sqlite());
  const look = tool({ name: "look", description: "", input: z.object({}), execute: () => "Seen" });
  const model = scripted({ text: "One two three", calls: [["look", {}]] }, "Done.");
  const app = serve(agent({ model, tools: [look] }), { store });
  const before = Date.now();
  const events = await eventsOf(post(app, "/runs", { prompt: "Hi" }));
  assertEquals([events.at(-1)?.type, Date.now() - before], ["run.finished", 0]);
  assertEquals(additions().flat(), events.map(({ type }) => type));
  await app.settled();
  await time.runMicrotasks();
});

Deno.test("deltas that fill the room for them do not wait", async () => {
  using time = new FakeTime();
  const { store } = watched(sqlite({ deltasEvery: 60_000 }));
  const text = Array.from({ length: 100 }, () => "x".repeat(10_000));
  const app = serve(agent({ model: scripted({ text }) }), { store });
  const before = Date.now();
  const events = await eventsOf(post(app, "/runs", { prompt: "Hi" }));
  assertEquals([events.at(-1)?.type, Date.now() - before], ["run.finished", 0]);
  await app.settled();
  await time.runMicrotasks();
});

Deno.test("deltas in memory do not wait for those that follow", async () => {
  const { store, additions } = watched(memory());
  const app = serve(agent({ model: wordsOf(20, 5) }), { store });
  await eventsOf(post(app, "/runs", { prompt: "Hi" }));
  assertEquals(counted(additions()), [20, 20]);
});
