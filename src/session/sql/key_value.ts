/**
 * Texts by key in SQLite.
 *
 * @module
 */
import { expiry, sweepTimer } from "../expiry.ts";
import type { KeyValue } from "../../protocol/key_value.ts";
import { promiseTry } from "../../stream/tick.ts";
import { decodeValue, encodeKey, encodeValue, sumOf } from "../key_value/encoding.ts";
import { firstOf, type SqlStorage } from "./storage.ts";

/** The table of texts by key. */
export const valueTables: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS jizai_value (
    key TEXT PRIMARY KEY, body TEXT NOT NULL, expires INTEGER
  ) WITHOUT ROWID`,
  `CREATE INDEX IF NOT EXISTS jizai_value_expires ON jizai_value (expires) WHERE expires IS NOT NULL`,
];

/** Deletes expired texts, as many as one write may: an index finds them. */
export const deleteExpiredValues =
  "DELETE FROM jizai_value WHERE key IN (SELECT key FROM jizai_value WHERE expires <= ? ORDER BY expires LIMIT 500)";

/** Creates a key-value database in a database that has the table. Expired keys are deleted by writes: 500 at most, once a minute. */
export function sqlKeyValue(storage: SqlStorage): KeyValue {
  const { sql } = storage;
  const isSweepDue = sweepTimer();

  function find(key: string): { readonly body: string; readonly expires: number | null } | undefined {
    const row = firstOf(sql.exec(
      "SELECT body, expires FROM jizai_value WHERE key = ? AND (expires IS NULL OR expires > ?)",
      encodeKey(key),
      Date.now(),
    ));
    return row && { body: String(row.body), expires: row.expires === null ? null : Number(row.expires) };
  }

  function put(key: string, body: string, expires: number | null): void {
    sql.exec("INSERT OR REPLACE INTO jizai_value VALUES (?, ?, ?)", encodeKey(key), body, expires);
    if (isSweepDue()) sql.exec(deleteExpiredValues, Date.now());
  }

  return {
    get: (key) =>
      promiseTry(() => {
        const found = find(key);
        return found && decodeValue(found.body);
      }),
    set: (key, value, { expireIn = Infinity } = {}) =>
      promiseTry(() => storage.transactionSync(() => put(key, encodeValue(value), expiry(expireIn)))),
    increment: (key, { by = 1, expireIn = Infinity } = {}) =>
      promiseTry(() =>
        storage.transactionSync(() => {
          const found = find(key);
          const sum = sumOf(key, found?.body, by);
          put(key, String(sum), found ? found.expires : expiry(expireIn));
          return sum;
        })
      ),
    delete: (key) => promiseTry(() => void sql.exec("DELETE FROM jizai_value WHERE key = ?", encodeKey(key))),
  };
}
