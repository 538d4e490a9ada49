/**
 * Logs in SQLite.
 *
 * @module
 */
import { expiry } from "../expiry.ts";
import { followers } from "../followers.ts";
import type { Addition, Log, LogPage } from "../log.ts";
import { collectLines, piecesOf, textOfLines } from "../pieces.ts";
import { records } from "../record/records_of.ts";
import { firstOf, pieceLength, type SqlOptions, type SqlStorage, sweeper, sweptLogs } from "./storage.ts";
import { nextTick, promiseTry } from "../../stream/tick.ts";

// Transactions that share one commit, which waits for the disk.

/** Executes `work` in a transaction, and resolves to its result once it is committed. */
type Transact = <T>(work: () => T) => Promise<T>;

/** Work that waits for its transaction. */
interface Waiting {
  /** Executes the work within a transaction. Returns the function that passes the result on after the commit. */
  execute(): () => void;
  /** Executes the work in a transaction of its own, and passes on the result or the failure. */
  executeAlone(): void;
  /** Passes on a failure. */
  fail(error: unknown): void;
}

/**
 * Returns a function that executes the work of one tick of the event loop in one transaction. If one work fails, each is executed in a transaction of its own,
 * so that none fails because of another one.
 */
export function sharedTransactions(storage: SqlStorage): Transact {
  let waiting: Waiting[] = [];

  function commit(): void {
    const group = waiting;
    waiting = [];
    let passOn: readonly (() => void)[];
    let isOpen = false;
    try {
      passOn = storage.transactionSync(() => {
        isOpen = true;
        return group.map(({ execute }) => execute());
      });
    } catch (error) {
      for (const each of group) {
        if (isOpen) each.executeAlone();
        else each.fail(error); // a locked database would make each of them wait again
      }
      return;
    }
    for (const pass of passOn) pass();
  }

  return <T>(work: () => T) =>
    new Promise<T>((resolve, reject) => {
      if (waiting.length === 0) nextTick(commit);
      waiting.push({
        execute() {
          const result = work();
          return () => resolve(result);
        },
        executeAlone() {
          try {
            resolve(storage.transactionSync(work));
          } catch (error) {
            reject(error);
          }
        },
        fail: reject,
      });
    });
}

// The log: events of runs in the tables of a synchronous SQL database.

/** Options of `sqlLog()`. */
interface SqlLogOptions extends SqlOptions {
  /** Milliseconds between two looks for events that other processes have added. Infinity: only this process adds events. */
  readonly pollEvery: number;
  /** Executes additions in transactions. Default: each in its own. */
  readonly transact?: Transact;
  /** Milliseconds for which deltas wait for those that follow. */
  readonly deltasEvery: number;
}

/** Creates a log in a database that has the tables. */
export function sqlLog(
  storage: SqlStorage,
  {
    expireIn,
    sweepEvery,
    pollEvery,
    deltasEvery,
    transact = (work) => promiseTry(() => storage.transactionSync(work)),
  }: SqlLogOptions,
): Log {
  const { sql } = storage;
  const following = followers({ read: (run, after) => promiseTry(() => read(run, after)), longest: pollEvery });
  const sweep = sweeper(storage, sweptLogs, sweepEvery);
  storage.transactionSync(sweep);

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
    sweep();
    return true;
  }

  function read(run: string, after: number): LogPage | undefined {
    const head = headOf(run);
    if (!head) return undefined;
    // Another process may add more after the head was read, hence the last number.
    const collector = collectLines(after);
    const pieces = sql.exec(
      `SELECT first, part, text FROM jizai_log_piece WHERE run = ? AND first >= coalesce(
         (SELECT max(first) FROM jizai_log_piece WHERE run = ? AND first <= ?), 0
       ) AND first <= ? ORDER BY first, part`,
      run,
      run,
      after + 1,
      head.last,
    );
    for (const { first, part, text } of pieces) {
      if (!collector.add({ first: Number(first), part: Number(part), text: String(text) })) break;
    }
    return { ...collector.lines(), ...head };
  }

  function remove(run: string): void {
    for (const table of ["jizai_log_piece", "jizai_log"]) sql.exec(`DELETE FROM ${table} WHERE run = ?`, run);
  }

  return {
    records,
    deltasEvery,
    ...(expireIn < Infinity && { renewIn: expireIn / 2 }),
    async append(run, addition) {
      const done = await transact(() => add(run, addition));
      if (done) following.add(run, addition);
      return done;
    },
    read: (run, after) => promiseTry(() => read(run, after)),
    tail: following.tail,
    delete: (run) =>
      promiseTry(() => {
        storage.transactionSync(() => remove(run));
        following.remove(run);
      }),
  };
}
