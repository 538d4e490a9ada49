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

/**
 * The columns of sessions that an earlier schema may lack. `holder` and the negative of `version` are the mark, `until` is the end of the lease, and `ends` is the time at which the session expires. Versions of the
 * package before them find a session without a lease, an expiry and a body, so they cannot write it.
 */
const sessionColumns: readonly (readonly [name: string, type: string])[] = [
  ["lease", "INTEGER"],
  ["holder", "TEXT"],
  ["base", "INTEGER"],
  ["last", "INTEGER"],
  ["head", "TEXT"],
  ["until", "INTEGER"],
  ["ends", "INTEGER"],
];

/** The tables of sessions. `jizai_session_piece` has the bodies of sessions of earlier versions of the package. */
export const sessionTables: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS jizai_session (
    id TEXT PRIMARY KEY, version INTEGER NOT NULL, expires INTEGER, lease INTEGER,
    holder TEXT, base INTEGER, last INTEGER, head TEXT, until INTEGER, ends INTEGER
  ) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS jizai_session_entry (
    id TEXT NOT NULL, first INTEGER NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (id, first, part)
  ) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS jizai_session_piece (
    id TEXT NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (id, part)
  ) WITHOUT ROWID`,
  // also if an earlier version of the package deletes a session
  `CREATE TRIGGER IF NOT EXISTS jizai_session_deleted AFTER DELETE ON jizai_session BEGIN
    DELETE FROM jizai_session_entry WHERE id = OLD.id;
  END`,
  `CREATE INDEX IF NOT EXISTS jizai_session_expires ON jizai_session (expires) WHERE expires IS NOT NULL`,
  `CREATE INDEX IF NOT EXISTS jizai_session_lease ON jizai_session (lease) WHERE lease IS NOT NULL`,
  `CREATE INDEX IF NOT EXISTS jizai_session_until ON jizai_session (until) WHERE until IS NOT NULL`,
  `CREATE INDEX IF NOT EXISTS jizai_session_ends ON jizai_session (ends) WHERE ends IS NOT NULL`,
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

/** Creates the tables of sessions, and adds the columns that an older schema does not have. */
export function addSessionTables({ sql }: SqlStorage): void {
  const columns = Array.from(sql.exec("SELECT name FROM pragma_table_info('jizai_session')"), ({ name }) => name);
  const missing = sessionColumns.filter(([name]) => columns.length > 0 && !columns.includes(name));
  for (const [name, type] of missing) sql.exec(`ALTER TABLE jizai_session ADD COLUMN ${name} ${type}`);
  for (const statement of sessionTables) sql.exec(statement);
}

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

/** The tables of sessions. */
export const sweptSessions: Swept = {
  table: "jizai_session",
  columns: ["expires", "ends"],
  others: ["jizai_session_entry", "jizai_session_piece"],
  key: "id",
};

/** The tables of logs. */
export const sweptLogs: Swept = { table: "jizai_log", columns: ["expires"], others: ["jizai_log_piece"], key: "run" };
