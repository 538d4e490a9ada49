/**
 * The growth of costs with the length of a session: one run with ten calls after 10, 1,000 and 5,000 messages.
 *
 * @module
 */
import { memory, type Middleware, type Store, user } from "@jizai/jizai";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { redact } from "@jizai/jizai/middleware/redact";
import { migrate, postgresStore } from "@jizai/jizai/session/postgres";
import { redisStore } from "@jizai/jizai/session/redis";
import process from "node:process";
import postgres from "postgres";
import { postgresServer } from "../../servers/postgres_server.ts";
import { redisServer } from "../../servers/redis_server.ts";
import {
  callingAgent,
  callingRun,
  countedAdapters,
  longTranscript,
  type SessionSize,
  sessionSizes,
} from "../../support/growth.ts";
import type { Measure } from "../kit/measure.ts";
import { usedHeap } from "../kit/stopwatch.ts";

/** A store, and what it has sent since the last call. */
interface Counting {
  readonly store: Store;
  readonly count?: () => { readonly statements: number; readonly sent: number };
  /** The bytes of the write-ahead log since the last call. */
  readonly written?: () => Promise<number>;
}

/** The cost of one run. Times are the least of some samples, in milliseconds. */
interface Cost {
  readonly wall: number;
  /** The time of the processor, without that of the opening. */
  readonly cpu: number;
  readonly opening: number;
  readonly statements: number;
  readonly sent: number;
  readonly written: number;
}

/** Measures each store but Redis. Postgres is left out where it is not installed. */
export async function growthMeasures(): Promise<readonly Measure[]> {
  const inMemory = { store: memory({ maxBytes: Infinity, maxOwnerBytes: Infinity }) };
  return [
    await heap(), // first, while there is no garbage of others
    ...await growthOf("memory()", inMemory, 60),
    ...await beneath("memory()", inMemory),
    ...await onSqlite(),
    ...await onPostgres(),
  ];
}

/** Measures runs in sessions of each size. */
async function growthOf(name: string, adapters: Counting, samples: number): Promise<readonly Measure[]> {
  const measures: Measure[] = [];
  const costs: Cost[] = [];
  for (const size of sessionSizes) {
    const cost = await costOf(adapters, size, samples);
    const { statements, sent, written, wall, opening } = cost;
    const what = (figure: string) => `${name}, a run with ten calls after ${size.messages} messages, ${figure}`;
    costs.push(cost);
    measures.push({ what: what("wall"), figure: wall, unit: "ms" });
    measures.push({ what: what("opening"), figure: opening, unit: "ms", atMost: 100 });
    if (adapters.count) measures.push({ what: what("statements"), figure: statements, unit: "statements" });
    if (adapters.count) measures.push({ what: what("sent"), figure: sent / 1_000, unit: "KB" });
    if (adapters.written) measures.push({ what: what("WAL"), figure: written / 1_000, unit: "KB" });
  }
  const [few, , many] = costs as [Cost, Cost, Cost]; // one for each size
  const ratio = (figure: (cost: Cost) => number) => figure(many) / figure(few);
  const what = (figure: string) => `${name}, ${figure} after 5,000 messages, of those after 10`;
  if (!adapters.count) {
    return [...measures, {
      what: `${name}, more wall after 5,000 messages`,
      figure: many.wall - few.wall,
      unit: "ms",
      atMost: 1,
    }];
  }
  measures.push({ what: what("KB sent"), figure: ratio(({ sent }) => sent), unit: "x", atMost: 1.3 });
  if (adapters.written) {
    measures.push({
      what: what("KB of WAL"),
      figure: ratio(({ written }) => written),
      unit: "x",
      atMost: 1.3,
    });
  }
  const cpu = ratio(({ cpu }) => cpu);
  return [...measures, { what: what("ms of the processor apart from the opening"), figure: cpu, unit: "x", atMost: 3 }];
}

/** Returns the least cost of some runs, each in a session of its own. */
async function costOf(
  { store, count, written }: Counting,
  size: SessionSize,
  samples: number,
  use: () => readonly Middleware[] = () => [],
): Promise<Cost> {
  const messages = longTranscript(size);
  const costs: Cost[] = [];
  for (let sample = 0; sample < samples; sample++) {
    const id = `growth-${size.messages}-${sample}`;
    await store.save({ id, version: 0, messages });
    const assistant = callingAgent(use());
    const before = performance.now();
    const openingCpu = await processorTime(() => store.load(id));
    const opening = performance.now() - before;
    count?.();
    await written?.();
    const start = performance.now();
    const cpu = await processorTime(async () => {
      const { status } = count
        ? await callingRun({ store }, id, assistant)
        : await assistant.run({ prompt: "Go", session: id, store }).result;
      if (status !== "done") throw new Error(`Cannot measure: the run is ${status}`);
    });
    const wall = performance.now() - start;
    const { statements = 0, sent = 0 } = count?.() ?? {};
    costs.push({ wall, cpu: cpu - openingCpu, opening, statements, sent, written: await written?.() ?? 0 });
    await store.delete(id);
  }
  const least = (figure: keyof Cost) => Math.min(...costs.map((cost) => cost[figure]));
  return {
    wall: least("wall"),
    cpu: least("cpu"),
    opening: least("opening"),
    statements: least("statements"),
    sent: least("sent"),
    written: least("written"),
  };
}

/** Returns the milliseconds for which all threads of this process use a processor while some work is done. */
async function processorTime(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** Middleware that reads or changes all messages. Each sample has its own, as a process that has just started. */
const readers: Readonly<Record<string, () => readonly Middleware[]>> = {
  "compaction()": () => [compaction({ at: 100_000_000 })],
  "redact()": () => [redact()],
  "a hook that changes the messages of requests": () => [{
    name: "reminder",
    model: ({ request }, next) =>
      next({ request: { messages: [...request.messages, user("Mind the gap.", "reminder")] } }),
  }],
  "a hook that changes the transcript in each turn": () => [{
    name: "reminder",
    turn: ({ transcript }, next) => next({ transcript: [...transcript, user("Mind the gap.", "reminder")] }),
  }],
};

/** Measures by how much longer a run takes after 5,000 messages than after 10, beneath each reader. */
async function beneath(name: string, adapters: Counting): Promise<readonly Measure[]> {
  const [few, , many] = sessionSizes as [SessionSize, SessionSize, SessionSize];
  const measures: Measure[] = [];
  for (const [reader, use] of Object.entries(readers)) {
    const [before, after] = [await costOf(adapters, few, 10, use), await costOf(adapters, many, 10, use)];
    const figure = (after.wall - after.opening) - (before.wall - before.opening);
    measures.push({
      what: `${name}, more wall after 5,000 messages beneath ${reader}`,
      figure,
      unit: "ms",
      atMost: 30,
    });
  }
  return measures;
}

async function onSqlite(): Promise<readonly Measure[]> {
  await Deno.mkdir("dist", { recursive: true });
  const folder = await Deno.makeTempDir({ dir: "dist" });
  try {
    const adapters = countedAdapters.SQLite(`${folder}/growth.db`);
    return [...await growthOf("SQLite", adapters, 15), ...await beneath("SQLite", adapters)];
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function onPostgres(): Promise<readonly Measure[]> {
  await using server = await postgresServer({ fsync: true });
  if (!server) return [];
  const sql = postgres(server.url, { onnotice: () => {}, fetch_types: false });
  const { counted, count } = counter();
  const client = {
    listen: sql.listen,
    unsafe: (query: string, values?: (string | number | boolean | null)[], options?: { prepare?: boolean }) =>
      counted(values ?? [], () => sql.unsafe(query, values, options)),
  };
  await migrate(client);
  let last = "0/0";
  async function written(): Promise<number> {
    const [row] =
      await sql`SELECT pg_current_wal_lsn()::text AS at, pg_wal_lsn_diff(pg_current_wal_lsn(), ${last})::text AS bytes`;
    last = String(row?.at);
    return Number(row?.bytes);
  }
  const measures = await growthOf("Postgres", { store: postgresStore(client), count, written }, 5);
  await sql.end({ timeout: 0 });
  return measures;
}

/** Measures Redis, if it is installed. */
export async function redisGrowthMeasures(): Promise<readonly Measure[]> {
  await using server = await redisServer();
  if (!server) return [];
  const { Redis } = await import("ioredis"); // loaded last, as in the measures of stores
  const redis = new Redis(server.port, "127.0.0.1");
  const { counted, count } = counter();
  const client = {
    info: (section: string) => redis.info(section),
    duplicate: () => redis.duplicate(),
    eval: (script: string, keys: number, ...values: string[]) =>
      counted(values, () => redis.eval(script, keys, ...values)),
  };
  const measures = await growthOf("Redis", { store: redisStore(client), count }, 5);
  redis.disconnect();
  return measures;
}

/** Counts the statements of a client, and the characters of their values. */
function counter() {
  let [statements, sent] = [0, 0];
  return {
    counted<R>(values: readonly unknown[], work: () => R): R {
      statements++;
      for (const value of values) sent += String(value).length;
      return work();
    },
    count() {
      const last = { statements, sent };
      [statements, sent] = [0, 0];
      return last;
    },
  };
}

/** Measures the heap that sessions in memory take. */
async function heap(): Promise<Measure> {
  const store = memory({ maxBytes: Infinity, maxOwnerBytes: Infinity });
  const messages = longTranscript({ messages: 1_000, characters: 1_000 });
  await store.save({ id: "first", version: 0, messages });
  const before = usedHeap();
  for (let each = 0; each < 20; each++) await store.save({ id: `s${each}`, version: 0, messages });
  const figure = (usedHeap() - before) / 20;
  await store.load("first"); // the store lives until here
  return { what: "memory(), heap of a session of 1.1 MB as JSON", figure, unit: "MB" };
}
