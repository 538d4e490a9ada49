/**
 * Clients that follow a run in another process share its reads. The database counts the statements that it executes.
 */
import { agent, type Model, serve } from "@jizai/jizai";
import { type D1, type D1Statement, d1Store, migrate } from "@jizai/jizai/session/d1";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { eventsOf, first, framesOf, piecesOf, post } from "../support/requests.ts";

/** A prepared statement of a stand-in for D1. */
class Bound implements D1Statement {
  constructor(readonly sql: string, readonly values: readonly SQLInputValue[] = []) {}
  bind(...values: SQLInputValue[]): D1Statement {
    return new Bound(this.sql, values);
  }
}

/** Returns connections to one database, which count the batches that they execute. */
async function databases() {
  const database = new DatabaseSync(":memory:");
  const connect = () => {
    const counts = { batches: 0 };
    const d1: D1 = {
      prepare: (sql) => new Bound(sql),
      batch(statements) {
        counts.batches++;
        const rows = statements.map((each) =>
          each instanceof Bound ? database.prepare(each.sql).all(...each.values) : []
        );
        return Promise.resolve(rows.map((results) => ({ results })));
      },
    };
    return { counts, stores: { store: d1Store(d1) }, d1 };
  };
  await migrate(connect().d1);
  return connect;
}

/** A model that answers with 200 words, 20 milliseconds apart. */
const words: Model = {
  id: "words",
  async *stream() {
    for (let word = 0; word < 200; word++) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      yield [{ type: "text" as const, text: `${word} ` }];
    }
    yield [{ type: "finish" as const, reason: "stop" as const }];
  },
};

Deno.test("100 clients that follow a run of 200 words cost at most 1,000 queries in another process, and fewer in its own", async () => {
  using time = new FakeTime();
  const connect = await databases();
  const [here, elsewhere] = [connect(), connect()];
  const assistant = agent({ model: words });
  const [one, two] = [here, elsewhere].map(({ stores }) => serve(assistant, stores));
  if (!one || !two) return;
  const alone = connect();
  await advanceUntilSettled(time, eventsOf(post(serve(assistant, alone.stores), "/runs", { prompt: "Hi" })));
  const pieces = piecesOf(await post(one, "/runs", { prompt: "Hi" }));
  const { run } = first("run.started", framesOf(await pieces.until("model.started")));
  const follow = (app: typeof one) => Array.from({ length: 100 }, () => eventsOf(app.request(`/runs/${run}?after=0`)));
  const all = Promise.all([...follow(one), ...follow(two)]);
  const rest = pieces.rest();
  const received = await advanceUntilSettled(time, all);
  await rest;
  const [whole] = received;
  assertEquals(whole?.map(({ id }) => id), whole?.map((_, index) => index + 1));
  for (const events of received) assertEquals(events, whole);
  const own = here.counts.batches - alone.counts.batches;
  assertEquals([elsewhere.counts.batches <= 1_000, own <= 500], [true, true], `${elsewhere.counts.batches}, ${own}`);
});
