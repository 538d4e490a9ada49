/**
 * The capacity of small heaps and of stores, and the deadline of the store. Runs with transcripts of 100 KB, which `capacity.bytes` admits to a heap of 128 and of
 * 512 MB, all end. A request and a run get over a store that is frozen.
 *
 * @module
 */
import { agent, memory, serve, type Store, textOf, user } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { denoKvStore } from "@jizai/jizai/session/deno_kv";
import { durable } from "@jizai/jizai/session/durable";
import { migrate as migratePostgres, postgresStore } from "@jizai/jizai/session/postgres";
import { redisStore } from "@jizai/jizai/session/redis";
import postgres from "postgres";
import { postgresServer } from "../../servers/postgres_server.ts";
import { redisServer } from "../../servers/redis_server.ts";
import { callingAgent, callingRun, countedAdapters } from "../../support/growth.ts";
import { deno } from "../kit/processes.ts";
import type { Measure } from "../kit/measure.ts";

export async function capacityMeasures(): Promise<readonly Measure[]> {
  return [
    ...await heapMeasures(128, 96, 600),
    ...await heapMeasures(512, 400, 2_500),
    ...await heldMeasures(),
    ...await turnMeasures(),
    ...await largestMessages(),
    await refusalTime(),
    await survivedOutage(),
  ];
}

/** Measures the bytes that a run, a stream and a paused session hold. */
async function heldMeasures(): Promise<readonly Measure[]> {
  const program = new URL("../programs/held_bytes.ts", import.meta.url).pathname;
  const flags = ["--no-check", "--no-prompt", "--v8-flags=--expose-gc"];
  const { run, stream, paused, pausedHeap, pausedRows } = JSON.parse(await deno(["run", ...flags, program]));
  const held = (what: string, figure: number, atMost?: number): Measure => ({
    what: `bytes of ${what}`,
    figure: figure / 1_000,
    ...(atMost !== undefined && { atMost }),
    unit: "KB",
  });
  return [
    held("a run that waits for its model, without its transcript", run, 65.536), // what `capacity.bytes` counts for it
    held("the open stream of a client, beside its run", stream, 16),
    held("a paused session in memory()", paused),
    held("a paused session in the process, if a database has it", pausedHeap, 1),
    held("a paused session in SQLite, with its events and indexes", pausedRows),
  ];
}

/** Counts the statements of a turn with one call, and the characters that they send. */
async function turnMeasures(): Promise<readonly Measure[]> {
  const measures: Measure[] = [];
  for (const [name, open] of Object.entries(countedAdapters)) {
    const { store, count } = open();
    const costOf = async (turns: number) => {
      const id = `turns-${turns}`;
      await store.save({ id, version: 0, messages: [] });
      count();
      await callingRun({ store }, id, callingAgent([], turns));
      return count();
    };
    const [short, long] = [await costOf(10), await costOf(30)];
    measures.push(
      {
        what: `${name}, statements of a turn with one call`,
        figure: (long.statements - short.statements) / 20,
        unit: "statements",
      },
      {
        what: `${name}, characters that a turn with one call sends`,
        figure: (long.sent - short.sent) / 20_000,
        unit: "KB",
      },
    );
  }
  return measures;
}

/** Stores messages of 1 MB, 2 MB and so on up to 64 MB in the stores of this machine, until one is refused or damaged. */
async function largestMessages(): Promise<readonly Measure[]> {
  await using postgresDatabase = await postgresServer();
  await using redisDatabase = await redisServer();
  await using kv = await Deno.openKv(":memory:");
  const sql = postgresDatabase && postgres(postgresDatabase.url, { onnotice: () => {}, fetch_types: false });
  if (sql) await migratePostgres(sql);
  const redis = redisDatabase && new (await import("ioredis")).Redis(redisDatabase.port, "127.0.0.1");
  const stores: Readonly<Record<string, Store | undefined>> = {
    "memory()": memory(),
    "memory({ maxOwnerBytes: 2 ** 30, maxBytes: 2 ** 30 })": memory({ maxOwnerBytes: 2 ** 30, maxBytes: 2 ** 30 }),
    ...Object.fromEntries(Object.entries(countedAdapters).map(([name, open]) => [name, open().store])),
    "Deno KV": denoKvStore(kv),
    "Postgres": sql && postgresStore(sql),
    "Redis": redis && redisStore(redis),
  };
  const measures: Measure[] = [];
  for (const [name, store] of Object.entries(stores)) {
    if (store) {
      measures.push({
        what: `${name}, largest message of 1 to 64 MB that is stored`,
        figure: await largestIn(store),
        unit: "MB",
      });
    }
  }
  await sql?.end({ timeout: 0 });
  redis?.disconnect();
  return measures;
}

/** Returns the megabytes of the largest message that a store returns as it was stored. */
async function largestIn(store: Store): Promise<number> {
  let largest = 0;
  for (let megabytes = 1; megabytes <= 64; megabytes *= 2) {
    const id = `s${megabytes}`;
    const text = "0123456789abcdef".repeat(megabytes * 65_536);
    try {
      await store.save({ id, version: 0, messages: [user(text)] });
      const [message] = (await store.load(id))?.messages ?? [];
      if (message?.role !== "user" || textOf(message) !== text) return largest;
      await store.delete(id);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      console.log(`${megabytes} MB: ${error.message.slice(0, 120)}`);
      return largest;
    }
    largest = megabytes;
  }
  return largest;
}

/** Offers runs to a process with a small heap. */
async function heapMeasures(heap: number, capacity: number, requests: number): Promise<readonly Measure[]> {
  const flags = ["--no-check", "--no-prompt", `--v8-flags=--max-old-space-size=${heap}`];
  const program = new URL("../programs/small_heap.ts", import.meta.url).pathname;
  const printed = await deno(["run", ...flags, program, `${capacity}`, `${requests}`]);
  const { admitted, ended } = JSON.parse(printed);
  const name = `a heap of ${heap} MB, capacity.bytes of ${capacity} MB`;
  return [
    { what: `${name}: runs with 100 KB that are admitted`, figure: admitted, atLeast: heap * 2, unit: "runs" },
    { what: `${name}: admitted runs that do not end`, figure: admitted - ended, atMost: 0, unit: "runs" },
  ];
}

/** A store whose calls do not return while it is frozen, and the deadline of its server. */
function freezing(deadline: number) {
  const { journal } = memory();
  let thaw: Promise<void> | undefined;
  const frozen = Object.fromEntries(
    (["head", "open", "append", "entries", "read", "post"] as const).map((operation) => [
      operation,
      async (...args: never[]) => {
        await thaw;
        return await (journal[operation] as (...args: never[]) => Promise<unknown>)(...args); // it takes what its caller gives
      },
    ]),
  );
  const store = durable({ ...journal, ...frozen });
  return { options: { store, storeDeadline: deadline, onError() {} }, freeze: (until: Promise<void>) => thaw = until };
}

/** Measures how long a new request waits for its 503 while the store is frozen. */
async function refusalTime(): Promise<Measure> {
  const { options, freeze } = freezing(1_000);
  const app = serve(agent({ model: scripted("Hi") }), options);
  const { promise, resolve } = Promise.withResolvers<void>();
  freeze(promise);
  const began = performance.now();
  const { status } = await post(app);
  const figure = status === 503 ? performance.now() - began : NaN;
  resolve();
  return {
    what: "a frozen store, a deadline of 1,000 ms: time until a new request gets 503",
    figure,
    atMost: 1_250,
    unit: "ms",
  };
}

/** Measures how long after an outage of 15 seconds a run ends. */
async function survivedOutage(): Promise<Measure> {
  const { options, freeze } = freezing(5_000);
  const { promise, resolve } = Promise.withResolvers<void>();
  const model = scripted({
    before() {
      freeze(promise);
      setTimeout(resolve, 15_000);
      return Promise.resolve();
    },
    text: "Hi",
  });
  const app = serve(agent({ model }), options);
  const response = await post(app);
  const text = response.text().then((text) => [text, performance.now()] as const);
  await promise;
  const thawed = performance.now();
  const [events, at] = await text;
  const figure = events.includes(`"type":"run.finished"`) ? at - thawed : NaN;
  return {
    what: "a store that is frozen for 15 s: time from then until the run ends",
    figure,
    atMost: 5_000,
    unit: "ms",
  };
}

async function post(
  app: { request(path: string, init: RequestInit): Response | Promise<Response> },
): Promise<Response> {
  const headers = { "content-type": "application/json" };
  return await app.request("/runs", { method: "POST", headers, body: JSON.stringify({ prompt: "Hi" }) });
}
