/**
 * The cost of sessions and logs in real databases: the delay of followers, round trips, events for each write, and concurrent runs.
 *
 * @module
 */
import { agent, type Model, serve, type Store, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { memory } from "@jizai/jizai";
import { type Log, memoryLog } from "@jizai/jizai/session/log";
import { migrate, postgresLog, type PostgresSql, postgresStore } from "@jizai/jizai/session/postgres";
import { type RedisClient, redisLog, redisStore } from "@jizai/jizai/session/redis";
import { migrate as migrateFile, sqliteLog, sqliteStore } from "@jizai/jizai/session/sqlite";
import type { Redis as RedisConnection } from "ioredis";
import { DatabaseSync } from "node:sqlite";
import postgres from "postgres";
import * as z from "zod";
import { postgresServer } from "../../servers/postgres_server.ts";
import { redisServer } from "../../servers/redis_server.ts";
import type { Measure } from "../kit/measure.ts";
import { growthMeasures, redisGrowthMeasures } from "./growth.ts";

/** A store and a log in one database. */
interface Adapters {
  readonly store: Store;
  readonly log: Log;
}

/** A database under test. */
interface Database {
  readonly name: string;
  /** Opens adapters with a connection of their own. */
  open(): Adapters;
  /** The log of another process that polls or is notified, by what its measure says. */
  readonly logs: Readonly<Record<string, () => Log>>;
  /** Counts the round trips from now on. Absent if the database has none. */
  count?(): () => { readonly appends: number; readonly others: number };
}

/** Measures the databases that are installed. */
export async function storeMeasures(): Promise<readonly Measure[]> {
  const measures: Measure[] = [...await growthMeasures(), {
    what: "round trips to the store that a turn with one call waits for",
    figure: await awaitedRoundTrips(),
    atMost: 2,
    unit: "round trips",
  }];
  await concurrentRuns({ store: durable(memory().journal), log: memoryLog() }); // so that all code is compiled
  const inMemory = await concurrentRuns({ store: durable(memory().journal), log: memoryLog() });
  await onSqlite(async (database) => void measures.push(...await measuresOf(database, inMemory)));
  await onPostgres(async (database) => void measures.push(...await measuresOf(database, inMemory)));
  await onRedis(async (database) => void measures.push(...await measuresOf(database, inMemory)));
  measures.push(...await redisGrowthMeasures());
  return measures;
}

async function measuresOf(database: Database, inMemory: number): Promise<readonly Measure[]> {
  const { name, open, logs, count } = database;
  const measures: Measure[] = [];
  for (const [how, log] of Object.entries(logs)) {
    const figure = await tailDelay(open().log, log());
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

/** Returns the milliseconds after which 99 of 100 events have reached a follower, from when the writer may send them to its own client. */
async function tailDelay(writer: Log, reader: Log): Promise<number> {
  const run = crypto.randomUUID();
  await writer.append(run, { after: 0, lines: [], ended: false });
  const received: number[] = [];
  const logged: number[] = [];
  await reader.read(run, 0); // so that the follower is connected
  const reading = (async () => {
    for await (const { lines } of reader.tail(run, 0, new AbortController().signal)) {
      for (const _ of lines) received.push(performance.now());
    }
  })();
  await delay(200);
  for (let after = 0; after < 200; after++) {
    await delay(after % 2 === 0 ? 5 : 15);
    await writer.append(run, { after, lines: [`${after}`], ended: after === 199 });
    logged.push(performance.now());
  }
  await reading;
  const delays = received.map((at, index) => at - (logged[index] ?? NaN));
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
    await callingRun({ store: slowStore, log: memoryLog() }, turns);
    return performance.now() - start;
  };
  /** Returns the time of ten turns, without the beginning and the end of a run. */
  const timeOfTen = async (wait: number) => await timeOf(wait, 12) - await timeOf(wait, 2);
  const fast = await timeOfTen(5);
  return Math.round((await timeOfTen(5 + slower) - fast) / slower) / 10;
}

/** Measures the round trips of a turn with one call, beside those of the log, and the events of each write. */
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
      what: `${name}, round trips of a turn with one call beside the log's, also those that nothing waits for`,
      figure: (long - short) / 20,
      atMost: 2,
      unit: "round trips",
    },
    { what: `${name}, events for each write of 50 runs`, figure: 50 * 200 / deltas().appends, unit: "events" },
  ];
}

/** Executes a run with a number of turns. Returns its round trips beside those of the log. */
async function countedRun(
  { store, log }: Adapters,
  turns: number,
  count: NonNullable<Database["count"]>,
): Promise<number> {
  const counted = count();
  await callingRun({ store, log }, turns);
  return counted().others;
}

/** Executes a run with a number of turns, in each of which the model answers after 100 milliseconds and makes one call. */
async function callingRun({ store, log }: Adapters, turns: number): Promise<void> {
  const work = tool({ name: "work", description: "Works", input: z.object({}), execute: () => "ok" });
  const steps = Array.from({ length: turns }, () => ({ calls: [["work", {}]] as const, before: () => delay(100) }));
  const assistant = agent({ model: scripted(...steps, "Done."), tools: [work], limits: { turns: 100 } });
  await read(serve(assistant, { store, log }));
}

/** Executes 50 runs of 200 deltas, 10 milliseconds apart. Returns the milliseconds. */
async function concurrentRuns({ store, log }: Adapters): Promise<number> {
  const app = serve(agent({ model: steady }), { store, log });
  const start = performance.now();
  await Promise.all(Array.from({ length: 50 }, () => read(app)));
  return performance.now() - start;
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
        const file = connect();
        return { store: sqliteStore(file), log: sqliteLog(file) };
      },
      logs: { "polling": () => sqliteLog(connect()) },
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
  let appends = 0;
  let others = 0;
  function connect(): PostgresSql {
    const sql = postgres(server?.url ?? "", { onnotice: () => {}, fetch_types: false });
    clients.push(sql);
    return {
      listen: (...given) => sql.listen(...given),
      unsafe(query, ...given) {
        if (query.includes("jizai_log")) appends++;
        else others++;
        return sql.unsafe(query, ...given);
      },
    };
  }
  await migrate(connect());
  await measure({
    name: "Postgres",
    open() {
      const sql = connect();
      return { store: postgresStore(sql), log: postgresLog(sql) };
    },
    logs: { notified: () => postgresLog(connect()), polling: () => postgresLog(connect(), { listen: false }) },
    count: () => counter(() => ({ appends, others })),
  });
  for (const sql of clients) await sql.end({ timeout: 0 });
}

async function onRedis(measure: (database: Database) => Promise<void>): Promise<void> {
  await using server = await redisServer();
  if (!server) return console.log("Redis is left out: it is not installed (`apt-get install redis-server`)");
  const { Redis } = await import("ioredis"); // loaded last: its class that extends String makes every method of strings slower in V8
  const clients: RedisConnection[] = [];
  let appends = 0;
  let others = 0;
  function connect(): RedisClient {
    const redis = new Redis(server?.port ?? 0, "127.0.0.1");
    clients.push(redis);
    return {
      info: (section) => redis.info(section),
      duplicate: () => redis.duplicate(),
      eval(script, ...given) {
        if (script.includes("XADD") || script.includes("XRANGE")) appends++;
        else others++;
        return redis.eval(script, ...given);
      },
    };
  }
  await measure({
    name: "Redis",
    open() {
      const redis = connect();
      return { store: redisStore(redis), log: redisLog(redis) };
    },
    logs: { notified: () => redisLog(connect()) },
    count: () => counter(() => ({ appends, others })),
  });
  for (const redis of clients) redis.disconnect();
}

/** Returns a function that returns how much has been counted since. */
function counter<T extends { readonly appends: number; readonly others: number }>(now: () => T) {
  const before = now();
  return () => {
    const { appends, others } = now();
    return { appends: appends - before.appends, others: others - before.others };
  };
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
