/**
 * Long sessions, and stores that count what is sent to them: the cost of a run must not depend on the length of its session.
 *
 * @module
 */
import { agent, type Message, type Middleware, serve, type Store, tool, user } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { type D1, type D1Statement, d1Store, schema as d1Schema } from "@jizai/jizai/session/d1";
import { durableObjectStore, type ObjectStorage } from "@jizai/jizai/session/durable_object";
import { migrate, type SqliteDatabase, sqliteStore } from "@jizai/jizai/session/sqlite";
import { DatabaseSync } from "node:sqlite";
import * as z from "zod";
import { expectStorable, transact } from "./sql.ts";

/** The size of a session. */
export interface SessionSize {
  readonly messages: number;
  /** The number of characters of the texts of each message. */
  readonly characters: number;
}

/** The sizes of the sessions that are compared: 10 KB, 1 MB and 10 MB. */
export const sessionSizes: readonly SessionSize[] = [
  { messages: 10, characters: 1_000 },
  { messages: 1_000, characters: 1_000 },
  { messages: 5_000, characters: 2_000 },
];

/** Returns a valid transcript of a size: prompts, calls, results and answers. */
export function longTranscript({ messages, characters }: SessionSize): readonly Message[] {
  const text = "The quick brown fox jumps over it. ".repeat(Math.ceil(characters / 35)).slice(0, characters);
  return Array.from({ length: messages }, (_, index): Message => {
    const callId = `old${index >> 2}`;
    const parts = [{ type: "text", text: `${index} ${text}` }] as const;
    if (index % 4 === 0) return user(parts[0].text);
    if (index % 4 === 1 && index + 2 < messages) {
      return { role: "assistant", parts: [{ type: "call", id: callId, name: "work", input: { text } }] };
    }
    if (index % 4 === 2 && index + 1 < messages) {
      return { role: "tool", results: [{ callId, name: "work", status: "ok", parts }] };
    }
    return { role: "assistant", parts };
  });
}

const work = tool({ name: "work", description: "Works", input: z.object({}), execute: () => "ok" });

/** Creates an agent that makes one call in each of some turns before its answer. */
export function callingAgent(use: readonly Middleware[] = [], turns = 10) {
  const calls = Array.from({ length: turns }, () => ({ calls: [["work", {}]] as const }));
  return agent({ model: scripted(...calls, "Done."), tools: [work], use, limits: { turns: turns + 1 } });
}

/** An agent that needs no vars. */
export type Assistant = ReturnType<typeof callingAgent>;

/** Executes a run in a session over HTTP. Throws if it fails. */
export async function callingRun(
  { store }: { readonly store: Store },
  session: string,
  assistant: Assistant = callingAgent(),
): Promise<{ readonly status: "done" }> {
  const app = serve(assistant, { store });
  const headers = { "content-type": "application/json", accept: "text/event-stream" };
  const body = JSON.stringify({ prompt: "Go", session });
  const response = await app.request("/runs", { method: "POST", headers, body });
  const text = await response.text();
  await app.settled();
  if (!text.includes('"status":"done"')) throw new Error(`Cannot measure: the run ended with ${text.slice(-300)}`);
  return { status: "done" };
}

/** The work of a database since it was counted last. */
export interface Counts {
  readonly statements: number;
  /** The characters of the texts that were sent. */
  readonly sent: number;
  /** The rows that were written, without those of indexes. */
  readonly rows: number;
}

/** A store whose database is counted. */
export interface Counted {
  readonly store: Store;
  /** Returns the counts since the last call. */
  count(): Counts;
}

/** Options with which deltas are stored rarely: counts must not depend on the time that a run takes. */
const rare = { deltasEvery: 60_000 };

/** Opens adapters on an empty SQLite database, which stands in for those of Cloudflare: it refuses a text of more than 2 MB. */
export const countedAdapters: Readonly<Record<"SQLite" | "D1" | "a Durable Object", (path?: string) => Counted>> = {
  "SQLite": (path) => {
    const { database, count } = countedDatabase(path);
    migrate(database);
    return { store: sqliteStore(database, rare), count };
  },
  "D1": (path) => {
    const { database, count } = countedDatabase(path);
    database.exec(d1Schema);
    const d1 = d1On(database);
    return { store: d1Store(d1, rare), count };
  },
  "a Durable Object": (path) => {
    const { database, count } = countedDatabase(path);
    const storage: ObjectStorage = {
      sql: { exec: (sql, ...bindings) => database.prepare(sql).all(...bindings) as Record<string, string>[] },
      transactionSync: (work) => transact(database, work),
    };
    return { store: durableObjectStore(storage, rare), count };
  },
};

function countedDatabase(path = ":memory:"): { readonly database: SqliteDatabase; readonly count: Counted["count"] } {
  const file = new DatabaseSync(path);
  let counts = { statements: 0, sent: 0, rows: 0 };
  const counted = <R>(bindings: readonly (string | number | null)[], work: () => R): R => {
    expectStorable(bindings);
    counts.statements++;
    for (const value of bindings) counts.sent += String(value).length;
    return work();
  };
  const database: SqliteDatabase = {
    exec: (sql) => counted([], () => file.exec(sql)),
    prepare(sql) {
      const statement = file.prepare(sql);
      return {
        all: (...bindings) => counted(bindings, () => statement.all(...bindings)),
        run: (...bindings) => counted(bindings, () => statement.run(...bindings)),
      };
    },
  };
  let before = 0;
  return {
    database,
    count() {
      const rows = Number(file.prepare("SELECT total_changes() AS rows").get()?.rows);
      const last = { ...counts, rows: rows - before };
      before = rows;
      counts = { statements: 0, sent: 0, rows: 0 };
      return last;
    },
  };
}

/** Returns a stand-in for D1: a batch is a transaction. */
export function d1On(database: SqliteDatabase): D1 {
  type Bound = D1Statement & { readonly run: () => { readonly results: readonly unknown[] } };
  const prepare = (sql: string, ...values: (string | number | null)[]): Bound => ({
    bind: (...values) => prepare(sql, ...values as (string | number | null)[]), // the adapters bind nothing else
    run: () => ({ results: database.prepare(sql).all(...values) }),
  });
  return {
    prepare,
    batch: (statements) => Promise.resolve(transact(database, () => (statements as Bound[]).map(({ run }) => run()))), // prepare() has made them
  };
}
