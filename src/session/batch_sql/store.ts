/**
 * Sessions in SQLite behind a network.
 *
 * @module
 */
import type { Addition, Store, StoredHead } from "../../core/store.ts";
import { durable } from "../durable/mod.ts";
import { schemaText, sweepEvery } from "../expiry.ts";
import { entriesOf, type EntriesPiece, piecesOf, textOfEntries } from "../pieces.ts";
import { pieceLength } from "../sql/storage.ts";

// SQLite behind a network, as the adapters use it: statements in batches, each batch a transaction.

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

// The store: sessions in an SQL database that executes statements in batches.

/** Creates a store in a database that has the schema. Each operation is one batch. */
export function batchStore(execute: ExecuteBatch, { expireIn = Infinity }: BatchOptions): Store {
  const keep = expireIn < Infinity ? expireIn : null;
  const sweep = sweeper(expireIn, ["jizai_session_entry", "jizai_session", "jizai_session_head"], "id", "ends");
  const sweepWhole = sweeper(expireIn, ["jizai_session_piece", "jizai_session"], "id");

  /** Executes statements, and returns the rows of the first one. */
  async function query(...statements: readonly Statement[]): Promise<readonly Row[]> {
    const [rows = []] = await execute(statements);
    return rows;
  }

  /** Returns the head of a session in the rows of a batch. */
  function headIn([heads = [], wholes = []]: readonly (readonly Row[])[]): StoredHead | undefined {
    const [head] = heads;
    const [whole] = wholes;
    if (head) {
      const { version, holder, base, last, until, head: text } = head;
      const mark = { holder: String(holder), n: Number(version) };
      return { mark, base: Number(base), last: Number(last), until: endOf(until), head: String(text) };
    }
    if (!whole) return undefined;
    const text = wholes.map(({ text }) => text).join("");
    return { mark: { holder: "", n: Number(whole.version) }, base: 1, last: 0, until: endOf(whole.lease), head: text };
  }

  const headStatements = (
    id: string,
  ): readonly Statement[] => [[selectHead, id, Date.now()], [selectWhole, id, Date.now()]];

  /** Returns the statements of a save. All but the first depend on its success. */
  function putStatements(id: string, { from, to, head, entries, first, base, until }: Addition): readonly Statement[] {
    const now = Date.now();
    const isSaved = [id, to.holder, to.n] as const;
    const values = [to.n, to.holder, base, first + entries.length - 1, head] as const;
    const pieces = piecesOf(textOfEntries(entries), pieceLength);
    const lease = until ?? null;
    const ends = keep === null ? null : keep + Math.max(now, lease ?? 0);
    const put: Statement = from && from.holder !== ""
      ? until === undefined
        ? [keepLease, ...values, keep, now, id, from.n, from.holder, now]
        : [update, ...values, lease, ends, id, from.n, from.holder, now]
      : [insert, id, ...values, lease, ends, id, now, from?.n ?? null, from?.n ?? null, now];
    const clean: readonly Statement[] = from && from.holder !== "" ? [] : [
      [clearEntries, id, first, pieces.length, ...isSaved],
      [clearPieces, id, ...isSaved],
      [keepAway, id, ...isSaved],
    ];
    return [
      put,
      ...clean,
      ...pieces.map((text, part): Statement => [putPiece, id, first, part, text, ...isSaved]),
      [`SELECT 1 WHERE ${saved}`, ...isSaved],
    ];
  }

  return durable({
    head: async (id) => headIn(await execute(headStatements(id))),
    async open(id) {
      const rows = await execute([...headStatements(id), [selectEntriesFromBase, id, id]]);
      const head = headIn(rows);
      return head &&
        { ...head, entries: entriesOf(id, (rows[2] ?? []).map(pieceOf), { first: head.base, last: head.last }) };
    },
    async entries(id, first, last) {
      if (last < first) return [];
      const rows = await query([selectEntries, id, id, first, last]);
      return entriesOf(id, rows.map(pieceOf), { first, last });
    },
    async append(id, addition) {
      const statements = putStatements(id, addition);
      const results = await execute([...statements, ...sweep(), ...sweepWhole()]);
      return (results[statements.length - 1] ?? []).length > 0;
    },
    async delete(id) {
      const tables = ["jizai_session_piece", "jizai_session"]; // a trigger deletes the other rows
      await execute(tables.map((table) => [`DELETE FROM ${table} WHERE id = ?`, id]));
    },
    async list({ after = "", limit = 100 } = {}) {
      const now = Date.now();
      const rows = await query([list, after, now, after, now, limit]);
      return rows.map(({ id }) => String(id));
    },
    async pending(before, limit) {
      const now = Date.now();
      const rows = await query([pending, before, now, before, now, limit]);
      return rows.map(({ id }) => String(id));
    },
    async touch({ id, version, lease }, until) {
      if (!lease) return false;
      const now = Date.now();
      const values = [
        until,
        keep === null ? null : keep + Math.max(now, until),
        id,
        version,
        Math.trunc(lease.until),
        now,
      ] as const;
      const rows = await execute([[move, ...values], [moveWhole, ...values]]);
      return rows.some(({ length }) => length > 0);
    },
  });
}

function endOf(value: unknown): number | null {
  return value === null ? null : Number(value);
}

function pieceOf({ first, part, text }: Row): EntriesPiece {
  return { first: Number(first), part: Number(part), text: String(text) };
}

const alive = "(ends IS NULL OR ends > ?)";
const wholeAlive = "version > 0 AND (expires IS NULL OR expires > ?)";

const selectHead = `SELECT * FROM jizai_session_head WHERE id = ? AND ${alive}`;

/** Reads a session of an earlier version of the package. */
const selectWhole = `SELECT version, lease, text FROM jizai_session JOIN jizai_session_piece USING (id)
  WHERE id = ? AND ${wholeAlive} ORDER BY part`;

/** Reads the entries from the save on that contains the first one. */
const selectEntries = `SELECT first, part, text FROM jizai_session_entry WHERE id = ? AND first >= coalesce(
  (SELECT max(first) FROM jizai_session_entry WHERE id = ? AND first <= ?), 0) AND first <= ? ORDER BY first, part`;

const selectEntriesFromBase =
  `SELECT first, part, text FROM jizai_session_entry entry WHERE id = ? AND first >= coalesce(
  (SELECT max(first) FROM jizai_session_entry, jizai_session_head head
    WHERE jizai_session_entry.id = head.id AND head.id = ? AND first <= head.base), 0) ORDER BY first, part`;

/** Inserts a session unless there is one that has not expired, or moves the version of an earlier version of the package that the caller has read. */
const insert = `INSERT INTO jizai_session_head (id, version, holder, base, last, head, until, ends)
  SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE coalesce(
    (SELECT version FROM jizai_session WHERE id = ? AND ${wholeAlive}), 0) = coalesce(?, 0)
  ON CONFLICT (id) DO UPDATE SET version = excluded.version, holder = excluded.holder, base = excluded.base,
    last = excluded.last, head = excluded.head, until = excluded.until, ends = excluded.ends
    WHERE ? IS NULL AND jizai_session_head.ends <= ?
  RETURNING 1`;

/** Replaces the head that has the mark of the caller. */
const update = `UPDATE jizai_session_head SET version = ?, holder = ?, base = ?, last = ?, head = ?, until = ?, ends = ?
  WHERE id = ? AND version = ? AND holder = ? AND ${alive} RETURNING 1`;

/** The same, and the lease stays. */
const keepLease = `UPDATE jizai_session_head SET version = ?, holder = ?, base = ?, last = ?, head = ?,
  ends = ? + max(coalesce(until, 0), ?) WHERE id = ? AND version = ? AND holder = ? AND ${alive} RETURNING 1`;

/** True if the head has the mark that the batch has stored, or that one with the same mark stored before. */
const saved = "EXISTS (SELECT 1 FROM jizai_session_head WHERE id = ? AND holder = ? AND version = ?)";

/** Deletes the entries of a session that has expired. */
const clearEntries = `DELETE FROM jizai_session_entry WHERE id = ? AND NOT (first = ? AND part < ?) AND ${saved}`;

const clearPieces = `DELETE FROM jizai_session_piece WHERE id = ? AND ${saved}`;

/** Keeps earlier versions of the package away from a session: they can neither find nor replace a row without pieces, lease, expiry and version. */
const keepAway =
  `INSERT INTO jizai_session (id, version, expires, lease, writer) SELECT ?, -1, NULL, NULL, 'moved' WHERE ${saved}
  ON CONFLICT (id) DO UPDATE SET version = -1, expires = NULL, lease = NULL, writer = 'moved'`;

const putPiece = `INSERT INTO jizai_session_entry (id, first, part, text) SELECT ?, ?, ?, ? WHERE ${saved}
  ON CONFLICT (id, first, part) DO UPDATE SET text = excluded.text WHERE text <> excluded.text`;

const list = `SELECT id FROM jizai_session_head WHERE id > ? AND ${alive}
  UNION SELECT id FROM jizai_session WHERE id > ? AND ${wholeAlive} ORDER BY id LIMIT ?`;

const pending = `SELECT id FROM (
  SELECT id, until AS due FROM jizai_session_head WHERE until <= ? AND ${alive}
  UNION ALL SELECT id, lease FROM jizai_session WHERE lease <= ? AND ${wholeAlive}
) ORDER BY due LIMIT ?`;

/** Moves the end of the lease that the caller has read. */
const move = `UPDATE jizai_session_head SET until = ?, ends = ?
  WHERE id = ? AND version = ? AND until = ? AND ${alive} RETURNING 1`;

const moveWhole = `UPDATE jizai_session SET lease = ?, expires = ?
  WHERE id = ? AND version = ? AND lease = ? AND ${wholeAlive} RETURNING 1`;
