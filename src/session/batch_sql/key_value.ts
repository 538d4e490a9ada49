/**
 * Texts by key in SQLite behind a network.
 *
 * @module
 */
import { expiry } from "../expiry.ts";
import type { KeyValue } from "../../protocol/key_value.ts";
import { decodeValue, encodeKey, encodeValue, notANumber } from "../key_value/encoding.ts";
import { type ExecuteBatch, sweeper } from "./batch.ts";

/** Creates a key-value database in a database that has the schema. Each operation is one batch. */
export function batchKeyValue(execute: ExecuteBatch): KeyValue {
  const sweep = sweeper();
  return {
    async get(key) {
      const [[row] = []] = await execute([[select, encodeKey(key), Date.now()]]);
      return row && decodeValue(String(row.body));
    },
    async set(key, value, { expireIn = Infinity } = {}) {
      await execute([[upsert, encodeKey(key), encodeValue(value), expiry(expireIn)], ...sweep()]);
    },
    async increment(key, { by = 1, expireIn = Infinity } = {}) {
      const [[row] = []] = await execute([
        [add, encodeKey(key), String(by), expiry(expireIn), Date.now()],
        ...sweep(),
      ]);
      if (!row) throw notANumber(key);
      return Number(row.body);
    },
    async delete(key) {
      await execute([["DELETE FROM jizai_value WHERE key = ?", encodeKey(key)]]);
    },
  };
}

const select = "SELECT body FROM jizai_value WHERE key = ? AND (expires IS NULL OR expires > ?)";

const upsert = `INSERT INTO jizai_value (key, body, expires) VALUES (?, ?, ?)
  ON CONFLICT (key) DO UPDATE SET body = excluded.body, expires = excluded.expires`;

/** Adds to a counter, or begins one where there is none or where it has expired. Returns no row if the text is not a whole number. */
const add = `INSERT INTO jizai_value (key, body, expires) VALUES (?1, ?2, ?3)
  ON CONFLICT (key) DO UPDATE SET
    body = CASE WHEN jizai_value.expires <= ?4 THEN excluded.body
      ELSE CAST(CAST(jizai_value.body AS INTEGER) + CAST(excluded.body AS INTEGER) AS TEXT) END,
    expires = CASE WHEN jizai_value.expires <= ?4 THEN excluded.expires ELSE jizai_value.expires END
  WHERE jizai_value.expires <= ?4 OR jizai_value.body NOT LIKE '"%'
  RETURNING body`;
