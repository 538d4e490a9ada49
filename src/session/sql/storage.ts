/**
 * SQLite as the adapters use it, and the schema that they share.
 *
 * @module
 */

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

/** The expiry of entries. */
export interface SqlOptions {
  /** Milliseconds after its last change that an entry expires; for the session of an active run, after the end of its lease. */
  readonly expireIn: number;
  /** The least number of milliseconds between two deletions of expired entries. Infinity: they are deleted once, at the start. */
  readonly sweepEvery: number;
}

/** The tables of journals. `writer` is unique for each write of a row: the other statements of a batch depend on it, since a batch cannot be decided in between. */
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
  "CREATE INDEX IF NOT EXISTS jizai_journal_owner ON jizai_journal (owner, session) WHERE session IS NOT NULL",
  "CREATE INDEX IF NOT EXISTS jizai_journal_due ON jizai_journal (due) WHERE due IS NOT NULL",
  "CREATE INDEX IF NOT EXISTS jizai_journal_expires ON jizai_journal (expires) WHERE expires IS NOT NULL",
];

/** The tables of logs. */
export const logTables: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS jizai_log (
    run TEXT PRIMARY KEY, last INTEGER NOT NULL, ended INTEGER NOT NULL, expires INTEGER
  ) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS jizai_log_piece (
    run TEXT NOT NULL, first INTEGER NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (run, first, part)
  ) WITHOUT ROWID`,
  `CREATE INDEX IF NOT EXISTS jizai_log_expires ON jizai_log (expires) WHERE expires IS NOT NULL`,
];

/** The most characters of a piece: a row of a Durable Object holds 2 MB, and a save writes each row that changes. */
export const pieceLength = 100_000;

/** Returns the first row, if there is one. */
export function firstOf<T>(rows: Iterable<T>): T | undefined {
  const [row] = rows;
  return row;
}

/** Returns a function that deletes the rows that have expired by a column of a table, and those of its other tables, at most once in `every` milliseconds. */
export function sweeper(
  { sql }: SqlStorage,
  { table, others, key, columns }: Swept,
  every: number,
): () => void {
  let due = 0;
  return () => {
    const now = Date.now();
    if (now < due) return;
    due = now + every;
    for (const column of columns) {
      for (const each of [...others, table]) {
        sql.exec(`DELETE FROM ${each} WHERE ${key} IN (SELECT ${key} FROM ${table} WHERE ${column} <= ?)`, now);
      }
    }
  };
}

/** Tables whose rows expire. */
interface Swept {
  /** The table with the columns that contain when its rows expire. */
  readonly table: string;
  readonly columns: readonly string[];
  /** The tables with more rows of the same key. */
  readonly others: readonly string[];
  readonly key: string;
}

/** The tables of logs. */
export const sweptLogs: Swept = { table: "jizai_log", columns: ["expires"], others: ["jizai_log_piece"], key: "run" };
