/**
 * Logs in the storage of a Durable Object.
 *
 * @module
 */
import { follow, notifier } from "../notifier.ts";
import type { Addition, Log, LogPage } from "../log.ts";
import { records } from "../record/records.ts";
import { collectLines, piecesOf, textOfLines } from "../pieces.ts";
import { type DurableObjectOptions, expiry, firstOf, type ObjectStorage, pieceLength, sweep } from "./storage.ts";
import { promiseTry } from "../../stream/promise_try.ts";

const tables = [
  `CREATE TABLE IF NOT EXISTS jizai_log (
    run TEXT PRIMARY KEY, last INTEGER NOT NULL, ended INTEGER NOT NULL, expires INTEGER
  ) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS jizai_log_piece (
    run TEXT NOT NULL, first INTEGER NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (run, first, part)
  ) WITHOUT ROWID`,
];

/**
 * Keeps logs in the storage of a Durable Object. Create it once, in the constructor of the object: an addition notifies the followers of the same instance.
 *
 * ```ts
 * import { durableObjectLog, type ObjectStorage } from "@jizai/jizai/session/durable_object";
 * import type { Log } from "@jizai/jizai/session/log";
 *
 * class Conversation {
 *   readonly log: Log;
 *
 *   constructor(ctx: { readonly storage: ObjectStorage }) {
 *     this.log = durableObjectLog(ctx.storage, { expireIn: 60 * 60 * 1_000 });
 *   }
 * }
 * ```
 */
export function durableObjectLog(storage: ObjectStorage, { expireIn = Infinity }: DurableObjectOptions = {}): Log {
  const { sql } = storage;
  const additions = notifier();

  /** Reads the end of a record. */
  function headOf(run: string): Pick<LogPage, "last" | "ended"> | undefined {
    const row = firstOf(sql.exec(
      "SELECT last, ended FROM jizai_log WHERE run = ? AND (expires IS NULL OR expires > ?)",
      run,
      Date.now(),
    ));
    return row && { last: Number(row.last), ended: row.ended === 1 };
  }

  function add(run: string, { after, lines, ended }: Addition): boolean {
    const head = headOf(run);
    if ((head?.last ?? after) !== after) return false;
    if (!head) remove(run); // an expired record
    const last = after + lines.length;
    sql.exec("INSERT OR REPLACE INTO jizai_log VALUES (?, ?, ?, ?)", run, last, ended ? 1 : 0, expiry(expireIn));
    for (const [part, text] of piecesOf(textOfLines(lines), pieceLength).entries()) {
      sql.exec("INSERT INTO jizai_log_piece VALUES (?, ?, ?, ?)", run, after + 1, part, text);
    }
    return true;
  }

  function read(run: string, after: number): LogPage | undefined {
    const head = headOf(run);
    if (!head) return undefined;
    const collector = collectLines(after);
    const pieces = sql.exec(
      `SELECT first, part, text FROM jizai_log_piece WHERE run = ? AND first >= coalesce(
         (SELECT max(first) FROM jizai_log_piece WHERE run = ? AND first <= ?), 0
       ) ORDER BY first, part`,
      run,
      run,
      after + 1,
    );
    for (const { first, part, text } of pieces) {
      if (!collector.add({ first: Number(first), part: Number(part), text: String(text) })) break;
    }
    return { ...collector.lines(), ...head };
  }

  function remove(run: string): void {
    for (const table of ["jizai_log_piece", "jizai_log"]) sql.exec(`DELETE FROM ${table} WHERE run = ?`, run);
  }

  storage.transactionSync(() => {
    for (const table of tables) sql.exec(table);
    sweep(storage, "jizai_log", "run");
  });

  return {
    records,
    ...(expireIn < Infinity && { renewIn: expireIn / 2 }),
    append: (run, addition) =>
      promiseTry(() => {
        const done = storage.transactionSync(() => add(run, addition));
        if (done) additions.notify(run);
        return done;
      }),
    read: (run, after) => promiseTry(() => read(run, after)),
    tail: (run, after, signal) =>
      follow(after, signal, (at) => promiseTry(() => read(run, at)), () => additions.subscribe(run, signal)),
    delete: (run) =>
      promiseTry(() => {
        storage.transactionSync(() => remove(run));
        additions.notify(run);
      }),
  };
}
