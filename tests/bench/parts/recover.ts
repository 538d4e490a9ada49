/**
 * The time in which `recover()` finds and claims lost runs among many stored sessions.
 *
 * @module
 */
import { agent, memory, serve, type Session, type Store, user } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { denoKvStore } from "@jizai/jizai/session/deno_kv";
import { durable } from "@jizai/jizai/session/durable";
import { migrate as migratePostgres, postgresStore } from "@jizai/jizai/session/postgres";
import { migrate, sqliteStore } from "@jizai/jizai/session/sqlite";
import { DatabaseSync } from "node:sqlite";
import postgres from "postgres";
import { postgresServer } from "../../servers/postgres_server.ts";
import type { Measure } from "../kit/measure.ts";
import { median } from "../kit/stopwatch.ts";

const sessions = 10_000;
const lost = 10;
const rounds = 20;

/** Recovers ten runs among ten thousand sessions, with every adapter that holds many sessions. */
export async function recoverMeasures(): Promise<readonly Measure[]> {
  await Deno.mkdir("dist", { recursive: true });
  const folder = await Deno.makeTempDir({ dir: "dist" });
  try {
    const measures = [...await measure("memory", durable(memory({ max: 2 * sessions }).journal))];
    using kv = await Deno.openKv(`${folder}/kv`);
    measures.push(...await measure("Deno KV on disk", denoKvStore(kv)));
    const database = new DatabaseSync(`${folder}/sqlite`);
    migrate(database);
    measures.push(...await measure("SQLite on disk", sqliteStore(database)));
    database.close();
    return [...measures, ...await postgresMeasures()];
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function postgresMeasures(): Promise<readonly Measure[]> {
  await using server = await postgresServer();
  if (!server) {
    console.log("Left out: Postgres is not installed (apt-get install postgresql)");
    return [];
  }
  const sql = postgres(server.url, { onnotice: () => {}, fetch_types: false });
  try {
    await migratePostgres(sql);
    return await measure("Postgres", postgresStore(sql));
  } finally {
    await sql.end();
  }
}

async function measure(name: string, kept: Store): Promise<readonly Measure[]> {
  let claimed = 0;
  const { journal } = kept;
  const store = durable({
    ...journal,
    async append(key, append) {
      const done = await journal.append(key, append);
      if (append.change?.entries.some(({ type }) => type === "begun")) claimed = performance.now();
      return done;
    },
  });
  for (let n = 0; n < sessions; n += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, index) => store.save(sessionNamed(`s${n + index}`))));
  }
  const app = serve(agent({ model: scripted(...Array.from({ length: rounds * lost }, () => "Done.")) }), { store });
  const times: { readonly claimed: number; readonly begun: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    await Promise.all(Array.from({ length: lost }, (_, index) => store.save(lostSession(`lost${round}:${index}`))));
    const begin = performance.now();
    const { runs, over } = await app.recover({ limit: lost });
    times.push({ claimed: claimed - begin, begun: performance.now() - begin });
    if (runs.length !== lost) throw new Error(`Cannot measure recover(): it took over ${runs.length} runs`);
    await over;
  }
  const what = `${lost} lost runs found and claimed among ${sessions} sessions, ${name}`;
  return [
    { what, figure: median(times.map(({ claimed }) => claimed)), atMost: 20, unit: "ms" },
    { what: "... until they have begun", figure: median(times.map(({ begun }) => begun)), unit: "ms" },
  ];
}

function sessionNamed(id: string): Session {
  return { id, version: 0, messages: Array.from({ length: 10 }, (_, index) => user(`Message ${index} of a session`)) };
}

/** A session whose run was lost before its first request. */
function lostSession(id: string): Session {
  return {
    ...sessionNamed(id),
    lease: { until: Date.now() - 1 },
    run: {
      id: crypto.randomUUID(),
      startedAt: Date.now(),
      position: { at: "model", turn: 1 },
      counters: { turns: 1, calls: 0, continuations: 0, batches: 0, outputs: 0, cuts: 0 },
      usage: { input: 0, output: 0 },
      state: [],
      answers: [],
      before: 10,
      events: 5,
    },
  };
}
