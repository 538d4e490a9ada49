/**
 * SQLite as the adapters use it, and the schema that they share.
 *
 * @module
 */
import { nextTick } from "../../stream/tick.ts";

/** An SQLite database with transactions: the part of a Durable Object's `ctx.storage` that is used. The object must have SQLite storage. */
export interface SqlStorage {
  /** Its database. */
  readonly sql: {
    /** Executes one statement, and returns its rows. */
    exec(query: string, ...bindings: readonly (string | number | null)[]): Iterable<Readonly<Record<string, unknown>>>;
  };
  /** Executes `work` in a transaction, which is rolled back if `work` throws. */
  transactionSync<T>(work: () => T): T;
}

/**
 * The tables of journals. `writer` is unique for each write of a row: the other statements of a batch depend on it, since a batch cannot be decided in between.
 * `jizai_journal_ended` has the time at which the last run of a journal was over, and the number of that run until its events are packed.
 */
export const journalTables: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS jizai_journal (
    key TEXT PRIMARY KEY, session TEXT, owner TEXT NOT NULL, holder TEXT NOT NULL, n INTEGER NOT NULL, run INTEGER NOT NULL,
    state INTEGER NOT NULL, base INTEGER NOT NULL, last INTEGER NOT NULL, events INTEGER NOT NULL, waiting INTEGER NOT NULL,
    due INTEGER, keep INTEGER, expires INTEGER, writer TEXT NOT NULL, head TEXT NOT NULL
  ) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS jizai_journal_entry (
    key TEXT NOT NULL, first INTEGER NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (key, first, part)
  ) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS jizai_journal_event (
    key TEXT NOT NULL, run INTEGER NOT NULL, first INTEGER NOT NULL, part INTEGER NOT NULL, last INTEGER NOT NULL,
    text TEXT NOT NULL, PRIMARY KEY (key, run, first, part)
  ) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS jizai_journal_ended (
    key TEXT PRIMARY KEY, at INTEGER NOT NULL, unpacked INTEGER
  ) WITHOUT ROWID`,
  "CREATE INDEX IF NOT EXISTS jizai_journal_ended_at ON jizai_journal_ended (at)",
  "CREATE INDEX IF NOT EXISTS jizai_journal_unpacked ON jizai_journal_ended (unpacked) WHERE unpacked IS NOT NULL",
  "CREATE INDEX IF NOT EXISTS jizai_journal_owner ON jizai_journal (owner, session) WHERE session IS NOT NULL",
  "CREATE INDEX IF NOT EXISTS jizai_journal_due ON jizai_journal (due) WHERE due IS NOT NULL",
  "CREATE INDEX IF NOT EXISTS jizai_journal_expires ON jizai_journal (expires) WHERE expires IS NOT NULL",
];

/** Joins lists of statements to one text. Each list is an argument: bundlers keep a spread, even in an argument of a call with a `@__PURE__` comment. */
export function schemaText(...statements: readonly (readonly string[])[]): string {
  return statements.flat().map((statement) => `${statement};\n`).join("");
}

/** The most characters of a piece: a row of a Durable Object holds 2 MB, and a packed addition is written again as a whole. */
export const pieceLength = 100_000;

/** Returns the first row, if there is one. */
export function firstOf<T>(rows: Iterable<T>): T | undefined {
  const [row] = rows;
  return row;
}

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
export function sharedTransactions(storage: SqlStorage): <T>(work: () => T) => Promise<T> {
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
