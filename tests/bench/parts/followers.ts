/**
 * The cost of followers: the queries and the delay of 100 clients that follow a run in another process, and the memory of 300 that do not read.
 *
 * @module
 */
import { agent, type Model, serve } from "@jizai/jizai";
import { durable } from "@jizai/jizai/session/durable";
import { migrate, type PostgresSql, postgresStore } from "@jizai/jizai/session/postgres";
import { migrate as migrateFile, sqliteStore } from "@jizai/jizai/session/sqlite";
import { DatabaseSync } from "node:sqlite";
import postgres from "postgres";
import { postgresServer } from "../../servers/postgres_server.ts";
import type { Measure } from "../kit/measure.ts";
import { growingRecord } from "../kit/record.ts";

const count = 100;

/** A model that answers with 200 words, 20 milliseconds apart. */
const words: Model = {
  id: "words",
  async *stream() {
    for (let word = 0; word < 200; word++) {
      await delay(20);
      yield [{ type: "text", text: `${word} ` }];
    }
    yield [{ type: "finish", reason: "stop" }];
  },
};

export async function followerMeasures(): Promise<readonly Measure[]> {
  return [...await onPostgres(), await memoryOfIdle(1, 299)];
}

async function onPostgres(): Promise<readonly Measure[]> {
  await using server = await postgresServer({ fsync: true });
  if (!server) {
    console.log("Postgres is left out: it is not installed (`apt-get install postgresql`)");
    return [];
  }
  const { url } = server;
  const clients: postgres.Sql[] = [];
  let queries = 0;
  function connect(isCounted: boolean): PostgresSql {
    const sql = postgres(url, { onnotice: () => {}, fetch_types: false });
    clients.push(sql);
    return {
      listen: (...given) => sql.listen(...given),
      unsafe(...given) {
        if (isCounted) queries++;
        return sql.unsafe(...given);
      },
    };
  }
  await migrate(connect(false));
  const measures: Measure[] = [];
  for (const [how, listen] of [["notified", true], ["polling", false]] as const) {
    const [writer, reader] = [connect(false), connect(true)];
    /** The time of each append, by the number of its last event. */
    const added: (readonly [last: number, at: number])[] = [];
    const { journal } = postgresStore(writer);
    const store = durable({
      ...journal,
      async append(key, append) {
        const done = await journal.append(key, append);
        const { first, lines } = append.events ?? { first: 1, lines: [] };
        if (done?.stored && lines.length > 0) added.push([first + lines.length - 1, performance.now()]);
        return done;
      },
    });
    const app = serve(agent({ model: words }), { store });
    const other = serve(agent({ model: words }), { store: postgresStore(reader, { listen }) });
    const headers = { "content-type": "application/json" };
    const response = await app.request("/runs", { method: "POST", headers, body: JSON.stringify({ prompt: "Hi" }) });
    const [own, ofRun] = response.body?.tee() ?? [];
    const run = await runIn(ofRun);
    queries = 0;
    const delays: number[] = [];
    const receive = async () => {
      const stream = (await other.request(`/runs/${run}?after=0`)).body?.pipeThrough(new TextDecoderStream());
      await delay(500); // the others join meanwhile
      const joined = performance.now();
      for await (const chunk of stream ?? []) {
        const at = performance.now();
        const last = Number(chunk.match(/id: (\d+)\n(?!.*id: )/s)?.[1] ?? 0);
        const append = added.find(([until]) => until >= last);
        if (append && append[1] > joined) delays.push(at - append[1]);
      }
    };
    await Promise.all([...Array.from({ length: count }, receive), new Response(own).text()]);
    measures.push(
      {
        what: `Postgres, statements of ${count} followers in another process, ${how}`,
        figure: queries,
        atMost: 1_000,
        unit: "statements",
      },
      ...[0.5, 0.99].map((part): Measure => ({
        what: `Postgres, delay of an event after its append for ${count} followers, ${part * 100} of 100, ${how}`,
        figure: delays.toSorted((a, b) => a - b)[Math.floor(delays.length * part)] ?? NaN,
        atMost: how === "notified" ? 50 : 250,
        unit: "ms",
      })),
    );
  }
  for (const sql of clients) await sql.end({ timeout: 0 });
  return measures;
}

/** Reads the id of a run from the beginning of its stream. */
async function runIn(stream: ReadableStream<Uint8Array> | undefined): Promise<string> {
  let text = "";
  for await (const chunk of stream?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    const run = /"run":"([^"]+)"/.exec(text)?.[1];
    if (run !== undefined) return run;
  }
  throw new Error("Cannot measure: the run has not begun");
}

/** Measures the memory of more followers of one run of 10 MB that do not read. */
async function memoryOfIdle(before: number, more: number): Promise<Measure> {
  using database = new DatabaseSync(":memory:");
  migrateFile(database);
  const store = sqliteStore(database);
  const record = await growingRecord(store.journal);
  const text = "x".repeat(10_000);
  for (let after = 0; after < 1_000; after += 10) {
    const lines = Array.from(
      { length: 10 },
      (_, index) => JSON.stringify({ type: "text.delta", text: `${after + index} ${text}` }),
    );
    await record.append(lines, after === 990);
  }
  const app = serve(agent({ model: words }), { store });
  const responses: Response[] = [];
  const open = async (followers: number) => {
    for (let each = 0; each < followers; each++) responses.push(await app.request(`/runs/${record.run}?after=0`));
    await delay(200);
    (globalThis as { gc?: () => void }).gc?.(); // --expose-gc
    return Deno.memoryUsage().heapUsed;
  };
  await open(before);
  const first = await open(0);
  const figure = (await open(more) - first) / 2 ** 20;
  for (const { body } of responses) await body?.cancel();
  return {
    what: `memory of ${more} more followers of a run of 10 MB that do not read, SQLite`,
    figure,
    atMost: 60,
    unit: "MB",
  };
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
