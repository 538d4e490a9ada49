/**
 * Sessions and texts by key in Postgres, by the driver postgres.js.
 *
 * @module
 */
import type { KeyValue } from "../../protocol/key_value.ts";
import { expiry, sweepTimer } from "../expiry.ts";
import { decodeValue, encodeKey, encodeValue, notANumber } from "../key_value/encoding.ts";
import { type PostgresSql, queryOf } from "./sql.ts";
export { migrate, type PostgresOptions, type PostgresSql, schema } from "./sql.ts";
export { postgresStore, type PostgresStoreOptions } from "./journal.ts";
export type { KeyValue } from "../../protocol/key_value.ts";
export type { DeltaOptions } from "../journal_rows.ts";

// Texts by key in Postgres.

/**
 * Keeps texts by key in Postgres. Each operation is one statement. Create the schema with `migrate()` before.
 *
 * ```ts
 * import { postgresKeyValue, type PostgresSql } from "@jizai/jizai/session/postgres";
 *
 * // sql: postgres(url, { fetch_types: false }) of postgres.js
 * export const valuesOn = (sql: PostgresSql) => postgresKeyValue(sql);
 * ```
 */
export function postgresKeyValue(sql: PostgresSql): KeyValue {
  const query = queryOf(sql);
  const isSweepDue = sweepTimer();

  /** Deletes expired texts once a minute, which an index finds. */
  async function sweep(): Promise<void> {
    if (isSweepDue()) await query(deleteExpired, Date.now());
  }

  return {
    async get(key) {
      const [row] = await query(select, encodeKey(key), Date.now());
      return row && decodeValue(String(row.body));
    },
    async set(key, value, { expireIn = Infinity } = {}) {
      await sweep();
      await query(upsert, encodeKey(key), encodeValue(value), expiry(expireIn));
    },
    async increment(key, { by = 1, expireIn = Infinity } = {}) {
      await sweep();
      const [row] = await query(add, encodeKey(key), String(by), expiry(expireIn), Date.now());
      if (!row) throw notANumber(key);
      return Number(row.body);
    },
    async delete(key) {
      await query("DELETE FROM jizai_value WHERE key = $1", encodeKey(key));
    },
  };
}

const deleteExpired = `DELETE FROM jizai_value
  WHERE key IN (SELECT key FROM jizai_value WHERE expires <= $1 LIMIT 500) AND expires <= $1`;

const select = "SELECT body FROM jizai_value WHERE key = $1 AND (expires IS NULL OR expires > $2)";

const upsert = `INSERT INTO jizai_value (key, body, expires) VALUES ($1, $2, $3)
  ON CONFLICT (key) DO UPDATE SET body = excluded.body, expires = excluded.expires`;

/** Adds to a counter, or begins one where there is none or where it has expired. Returns no row if the text is not a whole number. */
const add = `INSERT INTO jizai_value AS stored (key, body, expires) VALUES ($1, $2, $3)
  ON CONFLICT (key) DO UPDATE SET
    body = CASE WHEN stored.expires <= $4 THEN excluded.body ELSE (stored.body::bigint + excluded.body::bigint)::text END,
    expires = CASE WHEN stored.expires <= $4 THEN excluded.expires ELSE stored.expires END
  WHERE stored.expires <= $4 OR stored.body NOT LIKE '"%'
  RETURNING body`;
