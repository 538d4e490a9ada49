/**
 * Sessions in SQLite.
 *
 * @module
 */
import { expiry } from "../expiry.ts";
import { promiseTry } from "../../stream/promise_try.ts";
import { durable } from "../durable/mod.ts";
import type { Session } from "../../core/persistence/session.ts";
import type { Store } from "../../core/persistence/store.ts";
import { leaseEndOf, piecesOf, sessionOf, textOfSession } from "../pieces.ts";
import { firstOf, pieceLength, type SqlOptions, type SqlStorage, sweeper } from "./storage.ts";

/** Creates a store in a database that has the tables. A save writes the rows that have changed: the last ones if a transcript has grown. */
export function sqlStore(storage: SqlStorage, { expireIn, sweepEvery }: SqlOptions): Store {
  const { sql } = storage;
  const sweep = sweeper(storage, "jizai_session", "id", sweepEvery);
  storage.transactionSync(sweep);

  /** Returns the stored version; 0 if there is no session. */
  function versionOf(id: string): number {
    const row = firstOf(sql.exec(
      "SELECT version FROM jizai_session WHERE id = ? AND (expires IS NULL OR expires > ?)",
      id,
      Date.now(),
    ));
    return Number(row?.version ?? 0);
  }

  function write(session: Session, version: number, pieces: readonly string[]): void {
    const { id } = session;
    sql.exec(
      "INSERT OR REPLACE INTO jizai_session (id, version, expires, lease) VALUES (?, ?, ?, ?)",
      id,
      version,
      expiry(expireIn, leaseEndOf(session)),
      leaseEndOf(session),
    );
    for (const [part, text] of pieces.entries()) {
      sql.exec(
        `INSERT INTO jizai_session_piece VALUES (?, ?, ?)
         ON CONFLICT (id, part) DO UPDATE SET text = excluded.text WHERE text <> excluded.text`,
        id,
        part,
        text,
      );
    }
    sql.exec("DELETE FROM jizai_session_piece WHERE id = ? AND part >= ?", id, pieces.length);
  }

  return durable({
    load: (id) =>
      promiseTry(() => {
        // One statement reads one state of the database, whatever other processes write.
        const rows = [...sql.exec(
          `SELECT version, lease, text FROM jizai_session JOIN jizai_session_piece USING (id)
           WHERE id = ? AND (expires IS NULL OR expires > ?) ORDER BY part`,
          id,
          Date.now(),
        )];
        const [head] = rows;
        const text = rows.map(({ text }) => text).join("");
        return head && sessionOf(text, Number(head.version), head.lease === null ? null : Number(head.lease));
      }),
    save: (session) =>
      promiseTry(() => {
        const { id, version } = session;
        const pieces = piecesOf(textOfSession(session), pieceLength);
        return storage.transactionSync(() => {
          if (versionOf(id) !== version) return undefined;
          write(session, version + 1, pieces);
          sweep();
          return version + 1;
        });
      }),
    delete: (id) =>
      promiseTry(() =>
        storage.transactionSync(() => {
          sql.exec("DELETE FROM jizai_session WHERE id = ?", id);
          sql.exec("DELETE FROM jizai_session_piece WHERE id = ?", id);
        })
      ),
    list: ({ after = "", limit = 100 } = {}) =>
      promiseTry(() => {
        const rows = sql.exec(
          "SELECT id FROM jizai_session WHERE id > ? AND (expires IS NULL OR expires > ?) ORDER BY id LIMIT ?",
          after,
          Date.now(),
          limit,
        );
        return [...rows].map(({ id }) => String(id));
      }),
    pending: (before, limit) =>
      promiseTry(() => {
        const rows = sql.exec(
          "SELECT id FROM jizai_session WHERE lease <= ? AND (expires IS NULL OR expires > ?) ORDER BY lease LIMIT ?",
          before,
          Date.now(),
          limit,
        );
        return [...rows].map(({ id }) => String(id));
      }),
    touch: (session, until) =>
      promiseTry(() =>
        storage.transactionSync(() => {
          const { id, version } = session;
          const row = firstOf(sql.exec(
            `SELECT 1 FROM jizai_session WHERE id = ? AND version = ? AND lease = ? AND (expires IS NULL OR expires > ?)`,
            id,
            version,
            leaseEndOf(session),
            Date.now(),
          ));
          if (!row) return false;
          sql.exec("UPDATE jizai_session SET lease = ?, expires = ? WHERE id = ?", until, expiry(expireIn, until), id);
          return true;
        })
      ),
  });
}
