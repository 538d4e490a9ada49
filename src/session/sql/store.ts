/**
 * Sessions in SQLite.
 *
 * @module
 */
import type { Addition, Mark, Store, StoredHead } from "../../core/store.ts";
import { promiseTry } from "../../stream/tick.ts";
import { durable } from "../durable/mod.ts";
import { expiry, versionOf } from "../expiry.ts";
import { entriesOf, piecesOf, textOfEntries } from "../pieces.ts";
import { firstOf, pieceLength, type SqlOptions, type SqlStorage, sweeper, sweptSessions } from "./storage.ts";

/** A row of `jizai_session`. */
type SessionRow = Readonly<Record<string, unknown>>;

/** Creates a store in a database that has the tables. A save writes the row of its session and a row for the new entries. */
export function sqlStore(storage: SqlStorage, { expireIn, sweepEvery }: SqlOptions): Store {
  const { sql } = storage;
  const sweep = sweeper(storage, sweptSessions, sweepEvery);
  storage.transactionSync(sweep);

  /** Returns the row of a session that has not expired. */
  function rowOf(id: string): SessionRow | undefined {
    const now = Date.now();
    return firstOf(sql.exec(`SELECT * FROM jizai_session WHERE id = ? AND ${isAlive}`, id, now, now));
  }

  function headOf(id: string): StoredHead | undefined {
    const row = rowOf(id);
    if (!row || row.head !== null) return row && storedHead(row, String(row.head));
    const pieces = sql.exec("SELECT text FROM jizai_session_piece WHERE id = ? ORDER BY part", id);
    return storedHead(row, Array.from(pieces, ({ text }) => text).join(""));
  }

  function entries(id: string, first: number, last: number) {
    const rows = last < first ? [] : sql.exec(selectEntries, id, id, first, last);
    const pieces = Array.from(rows, ({ first, part, text }) => ({
      first: Number(first),
      part: Number(part),
      text: String(text),
    }));
    return entriesOf(id, pieces, { first, last });
  }

  /** Writes the rows of a save. */
  function write(id: string, row: SessionRow | undefined, { to, head, entries, first, base, until }: Addition): void {
    const lease = until === undefined ? leaseEnd(row) : until;
    const values = [versionOf(to), to.holder, base, first + entries.length - 1, head, lease, expiry(expireIn, lease)];
    if (row) sql.exec(update, ...values, id);
    else {
      for (const table of tables) sql.exec(`DELETE FROM ${table} WHERE id = ?`, id); // what has expired
      sql.exec(insert, ...values, id);
    }
    if (row?.head === null) sql.exec("DELETE FROM jizai_session_piece WHERE id = ?", id);
    for (const [part, text] of piecesOf(textOfEntries(entries), pieceLength).entries()) {
      sql.exec("INSERT INTO jizai_session_entry (id, first, part, text) VALUES (?, ?, ?, ?)", id, first, part, text);
    }
    sweep();
  }

  return durable({
    head: (id) => promiseTry(() => headOf(id)),
    open: (id) =>
      promiseTry(() =>
        storage.transactionSync(() => { // one state of the database, whatever other processes write
          const head = headOf(id);
          return head && { ...head, entries: entries(id, head.base, head.last) };
        })
      ),
    entries: (id, first, last) => promiseTry(() => entries(id, first, last)),
    append: (id, addition) =>
      promiseTry(() =>
        storage.transactionSync(() => {
          const row = rowOf(id);
          if (row && isAt(row, addition.to)) return true;
          if (row ? !addition.from || !isAt(row, addition.from) : addition.from) return false;
          write(id, row, addition);
          return true;
        })
      ),
    delete: (id) =>
      promiseTry(() =>
        storage.transactionSync(() => {
          for (const table of tables) sql.exec(`DELETE FROM ${table} WHERE id = ?`, id);
        })
      ),
    list: ({ after = "", limit = 100 } = {}) =>
      promiseTry(() => {
        const now = Date.now();
        const rows = sql.exec(
          `SELECT id FROM jizai_session WHERE id > ? AND ${isAlive} ORDER BY id LIMIT ?`,
          after,
          now,
          now,
          limit,
        );
        return Array.from(rows, ({ id }) => String(id));
      }),
    pending: (before, limit) =>
      promiseTry(() => {
        const now = Date.now();
        return Array.from(sql.exec(pending, before, now, before, now, limit), ({ id }) => String(id));
      }),
    touch: ({ id, version, lease }, until) =>
      promiseTry(() =>
        storage.transactionSync(() => {
          const row = rowOf(id);
          if (Math.abs(Number(row?.version)) !== version || !lease || leaseEnd(row) !== Math.trunc(lease.until)) {
            return false;
          }
          const [end, expires] = row?.head === null ? ["lease", "expires"] : ["until", "ends"];
          sql.exec(
            `UPDATE jizai_session SET ${end} = ?, ${expires} = ? WHERE id = ?`,
            until,
            expiry(expireIn, until),
            id,
          );
          return true;
        })
      ),
  });
}

/** Returns the head of a row. That of an earlier version of the package contains the whole session as its text, and no entries. */
function storedHead(row: SessionRow, head: string): StoredHead {
  return {
    mark: { holder: String(row.holder ?? ""), n: Math.abs(Number(row.version)) },
    base: Number(row.base ?? 1),
    last: Number(row.last ?? 0),
    until: leaseEnd(row),
    head,
  };
}

function isAt(row: SessionRow, mark: Mark): boolean {
  return Number(row.version) === versionOf(mark) && String(row.holder ?? "") === mark.holder;
}

/** Returns the end of the lease of a row; null without a lease. */
function leaseEnd(row: SessionRow | undefined): number | null {
  const end = row?.until ?? row?.lease ?? null;
  return end === null ? null : Number(end);
}

const tables = ["jizai_session_entry", "jizai_session_piece", "jizai_session"];

/** True for rows that have not expired. Its values are the time, twice. */
const isAlive = "(ends IS NULL OR ends > ?) AND (expires IS NULL OR expires > ?)";

const columns = ["version", "holder", "base", "last", "head", "until", "ends"];

const insert = `INSERT INTO jizai_session (${columns.join(", ")}, id) VALUES (${columns.map(() => "?").join(", ")}, ?)`;

/** Replaces the head. The lease and the expiry that earlier versions of the package read are removed. */
const update = `UPDATE jizai_session SET ${
  columns.map((column) => `${column} = ?`).join(", ")
}, lease = NULL, expires = NULL WHERE id = ?`;

/** Reads the entries from the save on that contains the first one. */
const selectEntries = `SELECT first, part, text FROM jizai_session_entry WHERE id = ? AND first >= coalesce(
  (SELECT max(first) FROM jizai_session_entry WHERE id = ? AND first <= ?), 0) AND first <= ? ORDER BY first, part`;

/** Reads the ids of ended leases. Those of earlier versions of the package are in a column of their own. */
const pending = `SELECT id FROM (
  SELECT id, until AS due FROM jizai_session WHERE until <= ? AND (ends IS NULL OR ends > ?)
  UNION ALL SELECT id, lease FROM jizai_session WHERE lease <= ? AND (expires IS NULL OR expires > ?)
) ORDER BY due LIMIT ?`;
