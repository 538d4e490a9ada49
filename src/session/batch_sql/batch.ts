/**
 * SQLite behind a network, as the adapters use it: statements in batches, each batch a transaction.
 *
 * @module
 */
import { sweepEvery } from "../expiry.ts";
import { schemaText } from "../schema.ts";

/** A value of a statement. */
export type SqlValue = string | number | null;

/** A statement with its values. */
export type Statement = readonly [sql: string, ...values: readonly SqlValue[]];

/** A row, by column name. */
export type Row = Readonly<Record<string, unknown>>;

/** Executes statements in one transaction, and returns the rows of each. */
export type ExecuteBatch = (statements: readonly Statement[]) => Promise<readonly (readonly Row[])[]>;

/** Options of the adapters. */
export interface BatchOptions {
  /**
   * Milliseconds after its last change that an entry expires; for the session of an active run, after the end of its lease.
   * Expired entries are deleted by later writes. Default: never.
   */
  readonly expireIn?: number;
}

/**
 * The schema, as statements that change nothing where it exists. `writer` is unique for each write of a row: the other statements of a batch depend on it, since
 * a batch cannot be decided in between.
 */
export const schemaStatements: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS jizai_session (
    id TEXT PRIMARY KEY, version INTEGER NOT NULL, expires INTEGER, lease INTEGER, writer TEXT NOT NULL
  ) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS jizai_session_piece (
    id TEXT NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (id, part)
  ) WITHOUT ROWID`,
  // the heads of sessions that have entries; the tables above are those of earlier versions of the package
  `CREATE TABLE IF NOT EXISTS jizai_session_head (
    id TEXT PRIMARY KEY, version INTEGER NOT NULL, holder TEXT NOT NULL, base INTEGER NOT NULL, last INTEGER NOT NULL,
    head TEXT NOT NULL, until INTEGER, ends INTEGER
  ) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS jizai_session_entry (
    id TEXT NOT NULL, first INTEGER NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (id, first, part)
  ) WITHOUT ROWID`,
  // also if an earlier version of the package deletes a session, whose row keeps it away
  `CREATE TRIGGER IF NOT EXISTS jizai_session_deleted AFTER DELETE ON jizai_session BEGIN
    DELETE FROM jizai_session_entry WHERE id = OLD.id;
    DELETE FROM jizai_session_head WHERE id = OLD.id;
  END`,
  "CREATE INDEX IF NOT EXISTS jizai_session_until ON jizai_session_head (until) WHERE until IS NOT NULL",
  "CREATE INDEX IF NOT EXISTS jizai_session_ends ON jizai_session_head (ends) WHERE ends IS NOT NULL",
  "CREATE INDEX IF NOT EXISTS jizai_session_expires ON jizai_session (expires) WHERE expires IS NOT NULL",
  "CREATE INDEX IF NOT EXISTS jizai_session_lease ON jizai_session (lease) WHERE lease IS NOT NULL",
  `CREATE TABLE IF NOT EXISTS jizai_log (
    run TEXT PRIMARY KEY, last INTEGER NOT NULL, ended INTEGER NOT NULL, expires INTEGER, writer TEXT NOT NULL
  ) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS jizai_log_piece (
    run TEXT NOT NULL, first INTEGER NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (run, first, part)
  ) WITHOUT ROWID`,
  "CREATE INDEX IF NOT EXISTS jizai_log_expires ON jizai_log (expires) WHERE expires IS NOT NULL",
  `CREATE TABLE IF NOT EXISTS jizai_value (
    key TEXT PRIMARY KEY, body TEXT NOT NULL, expires INTEGER
  ) WITHOUT ROWID`,
  "CREATE INDEX IF NOT EXISTS jizai_value_expires ON jizai_value (expires) WHERE expires IS NOT NULL",
];

/** The schema as one text. */
export const schema: string = /* @__PURE__ */ schemaText(schemaStatements); // bundlers leave out an unused one

/** Returns a function with the statements that delete expired rows: once a minute at most 500 rows, which an index finds, and none in between. */
export function sweeper(
  expireIn: number,
  tables: readonly string[],
  key: string,
  column = "expires",
): () => readonly Statement[] {
  let due = 0;
  return () => {
    const now = Date.now();
    if (now < due || expireIn === Infinity) return [];
    due = now + sweepEvery;
    const head = tables.at(-1);
    const expired = `SELECT ${key} FROM ${head} WHERE ${column} <= ? ORDER BY ${column} LIMIT 500`;
    return tables.map((table) => [`DELETE FROM ${table} WHERE ${key} IN (${expired})`, now]);
  };
}
