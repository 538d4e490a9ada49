/**
 * Sessions in the storage of a Durable Object.
 *
 * @module
 */
import { durable } from "../../core/persistence/session_writer.ts";
import type { Store } from "../../core/persistence/store.ts";
import { piecesOf, sessionOf, textOfSession } from "../pieces.ts";
import { type DurableObjectOptions, expiry, firstOf, type ObjectStorage, pieceLength, sweep } from "./storage.ts";
import { promiseTry } from "../../stream/promise_try.ts";

const tables = [
  `CREATE TABLE IF NOT EXISTS jizai_session (
    id TEXT PRIMARY KEY, version INTEGER NOT NULL, expires INTEGER
  ) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS jizai_session_piece (
    id TEXT NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (id, part)
  ) WITHOUT ROWID`,
];

/**
 * Keeps sessions in the storage of a Durable Object. Create it once, in the constructor of the object. A save writes the rows that have changed: the last
 * ones if a transcript has grown.
 *
 * ```ts
 * import type { Store } from "@jizai/jizai";
 * import { durableObjectStore, type ObjectStorage } from "@jizai/jizai/session/durable_object";
 *
 * class Conversation {
 *   readonly store: Store;
 *
 *   constructor(ctx: { readonly storage: ObjectStorage }) {
 *     this.store = durableObjectStore(ctx.storage);
 *   }
 * }
 * ```
 */
export function durableObjectStore(
  storage: ObjectStorage,
  { expireIn = Infinity }: DurableObjectOptions = {},
): Store {
  const { sql } = storage;

  /** Returns the stored version; 0 if there is no session. */
  function versionOf(id: string): number {
    const row = firstOf(sql.exec(
      "SELECT version FROM jizai_session WHERE id = ? AND (expires IS NULL OR expires > ?)",
      id,
      Date.now(),
    ));
    return Number(row?.version ?? 0);
  }

  function write(id: string, version: number, pieces: readonly string[]): void {
    sql.exec("INSERT OR REPLACE INTO jizai_session VALUES (?, ?, ?)", id, version, expiry(expireIn));
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

  storage.transactionSync(() => {
    for (const table of tables) sql.exec(table);
    sweep(storage, "jizai_session", "id");
  });

  return durable({
    load: (id) =>
      promiseTry(() => {
        const version = versionOf(id);
        if (version === 0) return undefined;
        const rows = [...sql.exec("SELECT text FROM jizai_session_piece WHERE id = ? ORDER BY part", id)];
        return sessionOf(rows.map(({ text }) => text).join(""), version);
      }),
    save: (session) =>
      promiseTry(() => {
        const { id, version } = session;
        const pieces = piecesOf(textOfSession(session), pieceLength);
        return storage.transactionSync(() => {
          if (versionOf(id) !== version) return undefined;
          write(id, version + 1, pieces);
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
  });
}
