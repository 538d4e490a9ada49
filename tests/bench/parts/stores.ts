/**
 * The cost of stores in real databases: the delay of followers, round trips, events for each write, and concurrent runs.
 *
 * @module
 */
import { agent, type Model, serve, type Store, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { memory } from "@jizai/jizai";
import { migrate, type PostgresSql, postgresStore } from "@jizai/jizai/session/postgres";
import { type RedisClient, redisStore } from "@jizai/jizai/session/redis";
import { migrate as migrateFile, sqliteStore } from "@jizai/jizai/session/sqlite";
import type { Redis as RedisConnection } from "ioredis";
import { DatabaseSync } from "node:sqlite";
import postgres from "postgres";
import * as z from "zod";
import { postgresServer } from "../../servers/postgres_server.ts";
import { redisServer } from "../../servers/redis_server.ts";
import { callingAgent } from "../../support/growth.ts";
import type { Measure } from "../kit/measure.ts";
import { growingRecord } from "../kit/record.ts";
import { growthMeasures, redisGrowthMeasures } from "./growth.ts";

/** A database under test. */
interface Database {
  readonly name: string;
  /** Opens a store with a connection of its own. */
  open(): Store;
  /** The store of another process that polls or is notified, by what its measure says. */
  readonly readers: Readonly<Record<string, () => Store>>;
  /** Counts the round trips from now on, and those that append events. Absent if the database has none. */
  count?(): () => RoundTrips;
}

/** Round trips, and those of them that append events. */
interface RoundTrips {
  readonly all: number;
  readonly appends: number;
}

/** Measures the databases that are installed. */
export async function storeMeasures(): Promise<readonly Measure[]> {
  const measures: Measure[] = [...await growthMeasures(), ...await journalMeasures(), {
    what: "round trips to the store that a turn with one call waits for",
    figure: await awaitedRoundTrips(),
    atMost: 2,
    unit: "round trips",
  }];
  await concurrentRuns(durable(memory().journal)); // so that all code is compiled
  const inMemory = await concurrentRuns(durable(memory().journal));
  await onSqlite(async (database) => void measures.push(...await measuresOf(database, inMemory)));
  await onPostgres(async (database) => void measures.push(...await measuresOf(database, inMemory)));
  await onRedis(async (database) => void measures.push(...await measuresOf(database, inMemory)));
  measures.push(...await redisGrowthMeasures());
  return measures;
}

async function measuresOf(database: Database, inMemory: number): Promise<readonly Measure[]> {
  const { name, open, readers, count } = database;
  const measures: Measure[] = [];
  for (const [how, reader] of Object.entries(readers)) {
    const figure = await followerDelay(open(), reader());
    measures.push({
      what: `${name}, delay of a follower in another process, 99th percentile, ${how}`,
      figure,
      atMost: how === "notified" ? 10 : 250,
      unit: "ms",
    });
  }
  if (count) measures.push(...await roundTrips(database, count));
  const time = await concurrentRuns(open());
  measures.push({
    what: `${name}, 50 runs of 200 deltas 10 ms apart, of those in memory`,
    figure: time / inMemory,
    atMost: 1.5,
    unit: "x",
  });
  return measures;
}

/** Returns the milliseconds after which 99 of 100 events have reached a client of another process, from when the writer may send them to its own client. */
async function followerDelay(writer: Store, reader: Store): Promise<number> {
  const record = await growingRecord(writer.journal);
  const app = serve(agent({ model: steady }), { store: reader });
  const { body } = await app.request(`/runs/${record.run}?after=0`);
  const received: number[] = [];
  const reading = (async () => {
    for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      for (const _ of chunk.matchAll(/^data: /gm)) received.push(performance.now());
    }
  })();
  await delay(200);
  const stored: number[] = [];
  for (let number = 1; number <= 200; number++) {
    await delay(number % 2 === 1 ? 5 : 15);
    await record.append([JSON.stringify({ type: "text.delta", text: `${number}` })], number === 200);
    stored.push(performance.now());
  }
  await reading;
  const delays = received.map((at, index) => at - (stored[index] ?? NaN));
  return delays.toSorted((a, b) => a - b)[Math.floor(delays.length * 0.99)] ?? NaN;
}

/** Returns the round trips to a store for which a turn waits, to a tenth: by how much longer it takes if each of them takes 40 milliseconds longer. */
async function awaitedRoundTrips(): Promise<number> {
  const slower = 40;
  const timeOf = async (wait: number, turns: number) => {
    const { journal } = memory();
    const slow = <A extends readonly unknown[], R>(work: (...given: A) => Promise<R>) => async (...given: A) => {
      await delay(wait);
      return await work(...given);
    };
    const slowStore = durable({ ...journal, append: slow(journal.append) });
    const start = performance.now();
    await callingRun(slowStore, turns);
    return performance.now() - start;
  };
  /** Returns the time of ten turns, without the beginning and the end of a run. */
  const timeOfTen = async (wait: number) => await timeOf(wait, 12) - await timeOf(wait, 2);
  const fast = await timeOfTen(5);
  return Math.round((await timeOfTen(5 + slower) - fast) / slower) / 10;
}

/** Measures the round trips of a turn with one call, and the events of each write. */
async function roundTrips(
  { name, open }: Database,
  count: NonNullable<Database["count"]>,
): Promise<readonly Measure[]> {
  const short = await countedRun(open(), 10, count);
  const long = await countedRun(open(), 30, count);
  const deltas = count();
  await concurrentRuns(open());
  return [
    {
      what: `${name}, round trips of a turn with one call, also those that nothing waits for`,
      figure: (long - short) / 20,
      atMost: 2,
      unit: "round trips",
    },
    { what: `${name}, events for each write of 50 runs`, figure: 50 * 200 / deltas().appends, unit: "events" },
  ];
}

/** Counts the calls of a journal that a run with ten calls makes, and those that it waits for until its first event. */
async function journalMeasures(): Promise<readonly Measure[]> {
  const body = { prompt: "Go" };
  const first = (what: string, figure: number, atMost: number): Measure => ({
    what: `round trips until the first event, ${what}`,
    figure,
    atMost,
    unit: "round trips",
  });
  return [
    {
      what: "round trips of a run with ten calls, events included",
      figure: (await journalCalls(body, { turns: 10 })).all,
      atMost: 26,
      unit: "round trips",
    },
    first("a new session", (await journalCalls(body)).first, 1),
    first("a named session", (await journalCalls({ ...body, session: "s" })).first, 2),
    first("a named session and a key", (await journalCalls({ ...body, session: "s" }, { key: "k" })).first, 3),
  ];
}

/** Counts the calls of a journal for one request: all of them, and those that have ended before its first event. Each takes 20 milliseconds. */
async function journalCalls(
  body: object,
  { turns = 1, key }: { readonly turns?: number; readonly key?: string } = {},
): Promise<{ readonly first: number; readonly all: number }> {
  const { journal } = memory();
  let calls = 0;
  const counted = <A extends readonly unknown[], R>(work: (...given: A) => Promise<R>) => async (...given: A) => {
    await delay(20);
    const result = await work(...given);
    calls++;
    return result;
  };
  const { head, open, entries, append, post, read, trim } = journal;
  const store = durable({
    ...journal,
    head: counted(head),
    open: counted(open),
    entries: counted(entries),
    append: counted(append),
    post: counted(post),
    read: counted(read),
    trim: counted(trim),
  });
  await store.save({ id: "s", version: 0, messages: [] });
  calls = 0;
  const app = serve(callingAgent([], turns), { store });
  const headers = { "content-type": "application/json", ...(key !== undefined && { "idempotency-key": key }) };
  const response = await app.request("/runs", { method: "POST", headers, body: JSON.stringify(body) });
  const reader = response.body?.getReader();
  await reader?.read();
  const first = calls;
  while (reader && !(await reader.read()).done);
  await app.settled();
  return { first, all: calls };
}

/** Executes a run with a number of turns. Returns its round trips. */
async function countedRun(
  store: Store,
  turns: number,
  count: NonNullable<Database["count"]>,
): Promise<number> {
  const counted = count();
  await callingRun(store, turns);
  return counted().all;
}

/** Executes a run with a number of turns, in each of which the model answers after 100 milliseconds and makes one call. */
async function callingRun(store: Store, turns: number): Promise<void> {
  const work = tool({ name: "work", description: "Works", input: z.object({}), execute: () => "ok" });
  const steps = Array.from({ length: turns }, () => ({ calls: [["work", {}]] as const, before: () => delay(100) }));
  const assistant = agent({ model: scripted(...steps, "Done."), tools: [work], limits: { turns: 100 } });
  const app = serve(assistant, { store });
  await read(app);
  await app.settled();
}

/** Executes 50 runs of 200 deltas, 10 milliseconds apart. Returns the milliseconds. */
async function concurrentRuns(store: Store): Promise<number> {
  const app = serve(agent({ model: steady }), { store });
  const start = performance.now();
  await Promise.all(Array.from({ length: 50 }, () => read(app)));
  const time = performance.now() - start;
  await app.settled(); // events are packed after the end
  return time;
}

/** A model that streams 200 deltas, 10 milliseconds apart. */
const steady: Model = {
  id: "steady",
  async *stream() {
    const start = performance.now();
    for (let delta = 1; delta <= 200; delta++) {
      await delay(Math.max(0, start + delta * 10 - performance.now()));
      yield [{ type: "text", text: "word " }];
    }
    yield [{ type: "finish", reason: "stop" }];
  },
};

/** Sends a prompt and reads the stream to its end. */
async function read(app: ReturnType<typeof serve>): Promise<void> {
  const headers = { "content-type": "application/json" };
  const response = await app.request("/runs", { method: "POST", headers, body: JSON.stringify({ prompt: "Hi" }) });
  const text = await response.text();
  if (!text.includes('"run.finished"')) throw new Error(`Cannot measure: the run ended with ${text.slice(-300)}`);
}

async function onSqlite(measure: (database: Database) => Promise<void>): Promise<void> {
  await Deno.mkdir("dist", { recursive: true });
  const folder = await Deno.makeTempDir({ dir: "dist" });
  const files: DatabaseSync[] = [];
  function connect(): DatabaseSync {
    const file = new DatabaseSync(`${folder}/bench.db`, { timeout: 5_000 });
    migrateFile(file);
    files.push(file);
    return file;
  }
  try {
    await measure({
      name: "SQLite",
      open() {
        return sqliteStore(connect());
      },
      readers: { polling: () => sqliteStore(connect()) },
    });
  } finally {
    for (const file of files) file.close();
    await Deno.remove(folder, { recursive: true });
  }
}

async function onPostgres(measure: (database: Database) => Promise<void>): Promise<void> {
  await using server = await postgresServer({ fsync: true });
  if (!server) return console.log("Postgres is left out: it is not installed (`apt-get install postgresql`)");
  const clients: postgres.Sql[] = [];
  let [all, appends] = [0, 0];
  function connect(): PostgresSql {
    const sql = postgres(server?.url ?? "", { onnotice: () => {}, fetch_types: false });
    clients.push(sql);
    return {
      listen: (...given) => sql.listen(...given),
      unsafe(query, ...given) {
        all++;
        if (query.includes("INTO jizai_journal_event")) appends++;
        return sql.unsafe(query, ...given);
      },
    };
  }
  await migrate(connect());
  await measure({
    name: "Postgres",
    open() {
      return postgresStore(connect());
    },
    readers: { notified: () => postgresStore(connect()), polling: () => postgresStore(connect(), { listen: false }) },
    count: () => counter(() => ({ all, appends })),
  });
  for (const sql of clients) await sql.end({ timeout: 0 });
}

async function onRedis(measure: (database: Database) => Promise<void>): Promise<void> {
  await using server = await redisServer();
  if (!server) return console.log("Redis is left out: it is not installed (`apt-get install redis-server`)");
  const { Redis } = await import("ioredis"); // loaded last: its class that extends String makes every method of strings slower in V8
  const clients: RedisConnection[] = [];
  let [all, appends] = [0, 0];
  function connect(): RedisClient {
    const redis = new Redis(server?.port ?? 0, "127.0.0.1");
    clients.push(redis);
    return {
      info: (section) => redis.info(section),
      duplicate: () => redis.duplicate(),
      eval(script, ...given) {
        all++;
        if (script.includes("XADD")) appends++;
        return redis.eval(script, ...given);
      },
    };
  }
  await measure({
    name: "Redis",
    open() {
      return redisStore(connect());
    },
    readers: { notified: () => redisStore(connect()) },
    count: () => counter(() => ({ all, appends })),
  });
  for (const redis of clients) redis.disconnect();
}

/** Returns a function that returns how much has been counted since. */
function counter(now: () => RoundTrips): () => RoundTrips {
  const before = now();
  return () => {
    const { all, appends } = now();
    return { all: all - before.all, appends: appends - before.appends };
  };
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
