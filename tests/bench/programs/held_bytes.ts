/**
 * Begins runs that wait for their model, and pauses others. Prints the bytes of heap that one of each holds, as JSON: a run without a client, the stream of its
 * client, a paused session in memory, and the bytes of one in a database of SQLite. Needs `--expose-gc`.
 *
 * @module
 */
import { agent, memory, type Model, serve, type ServedApp, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { migrate, sqliteStore } from "@jizai/jizai/session/sqlite";
import { DatabaseSync } from "node:sqlite";
import * as z from "zod";
import { usedHeap } from "../kit/stopwatch.ts";

const count = 500;
const never = new Promise<never>(() => {});
const held: unknown[] = []; // keeps what is measured from being collected

/** A model that has sent a word and waits. */
const waiting: Model = {
  id: "waiting",
  async *stream() {
    yield [{ type: "text", text: "Half" }];
    await never;
  },
};

function post(app: ServedApp, headers: Readonly<Record<string, string>> = {}) {
  const all = { "content-type": "application/json", ...headers };
  return app.request("/runs", { method: "POST", headers: all, body: JSON.stringify({ prompt: "Hi" }) });
}

/** Begins a run, and reads its response to the word with which it waits or pauses. */
async function begin(app: ServedApp, last: string): Promise<void> {
  const reader = (await post(app)).body?.getReader();
  for (let text = ""; reader && !text.includes(last);) text += new TextDecoder().decode((await reader.read()).value);
  held.push(reader);
}

async function beginInBackground(app: ServedApp): Promise<void> {
  await (await post(app, { prefer: "respond-async" })).text();
}

/** Returns the bytes of heap that one of `count` holds. */
async function bytesOf(work: () => Promise<void>): Promise<number> {
  for (let each = 0; each < 100; each++) await work(); // so that all code is compiled
  await settled();
  const before = usedHeap();
  for (let each = 0; each < count; each++) await work();
  await settled();
  return Math.round((usedHeap() - before) * 1_048_576 / count);
}

async function settled(): Promise<void> {
  for (let tick = 0; tick < 20; tick++) await new Promise((resolve) => setTimeout(resolve, 5));
}

const drop = tool({ name: "drop", description: "Drops", input: z.object({}), ask: true, execute: () => "dropped" });
const database = new DatabaseSync(":memory:"); // its memory is none of the heap
migrate(database);
const sizeOf = () => {
  const [pages, size] = ["page_count", "page_size"].map((name) =>
    Number(database.prepare(`PRAGMA ${name}`).get()?.[name])
  );
  return (pages ?? 0) * (size ?? 0);
};
const asks = scripted(...Array.from({ length: 5_000 }, () => ({ calls: [["drop", {}]] as const })));
const inDatabase = () => ({ store: sqliteStore(database) });
const background = serve(agent({ model: waiting }), inDatabase());
const streaming = serve(agent({ model: waiting }), { ...inDatabase(), heartbeat: 2 ** 30 });
const pausing = serve(agent({ model: asks, tools: [drop] }), {
  store: memory({ max: 10_000, maxOwnerBytes: Infinity, maxBytes: Infinity }),
});
const pausingStored = serve(agent({ model: asks, tools: [drop] }), inDatabase());
held.push(background, streaming, pausing, pausingStored);

const run = await bytesOf(() => beginInBackground(background));
const streamed = await bytesOf(() => begin(streaming, "Half"));
const paused = await bytesOf(async () => void await (await post(pausing)).text());
const before = sizeOf();
const pausedHeap = await bytesOf(async () => void await (await post(pausingStored)).text());
const pausedRows = Math.round((sizeOf() - before) / (count + 100));
console.log(JSON.stringify({ run, stream: streamed - run, paused, pausedHeap, pausedRows, held: held.length }));
Deno.exit(); // the runs never end
