/**
 * Sessions in Postgres.
 *
 * @module
 */
import { expectNames } from "../../protocol/option_names.ts";
import { expiry } from "../expiry.ts";
import { byDatabaseClock, durable } from "../durable/mod.ts";
import type { Store, StoreAdapter } from "../../core/persistence/store.ts";
import { leaseEndOf, sessionOf, textOfSession } from "../pieces.ts";
import { type PostgresOptions, type PostgresSql, queryOf, sweeper } from "./sql.ts";

/**
 * Keeps sessions in Postgres. Each operation is one statement, so it also works through a pooler. Create the schema with `migrate()` before.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { postgresLog, type PostgresSql, postgresStore } from "@jizai/jizai/session/postgres";
 *
 * const assistant = agent({ model: scripted("Hello!") });
 *
 * // sql: postgres(url) of postgres.js
 * export const appOn = (sql: PostgresSql) => serve(assistant, { store: postgresStore(sql), log: postgresLog(sql) });
 * ```
 */
export function postgresStore(sql: PostgresSql, options: PostgresOptions = {}): Store {
  expectNames("Cannot create postgresStore()", options, ["expireIn"]);
  const { expireIn = Infinity } = options;
  const query = queryOf(sql);
  const sweep = sweeper(query, "jizai_session", "id", expireIn);
  const adapter: StoreAdapter = {
    async load(id) {
      const [row] = await query(
        "SELECT version, lease, body FROM jizai_session WHERE id = $1 AND (expires IS NULL OR expires > $2)",
        id,
        Date.now(),
      );
      return row && sessionOf(String(row.body), Number(row.version), row.lease === null ? null : Number(row.lease));
    },
    async save(session) {
      await sweep();
      const { id, version } = session;
      const lease = leaseEndOf(session);
      const values = [id, textOfSession(session), expiry(expireIn, lease), Date.now(), lease] as const;
      const rows = version === 0 ? await query(insert, ...values) : await query(update, ...values, version);
      return rows.length === 0 ? undefined : version + 1;
    },
    async delete(id) {
      await query("DELETE FROM jizai_session WHERE id = $1", id);
    },
    async list({ after = "", limit = 100 } = {}) {
      const rows = await query(
        "SELECT id FROM jizai_session WHERE id > $1 AND (expires IS NULL OR expires > $2) ORDER BY id LIMIT $3",
        after,
        Date.now(),
        limit,
      );
      return rows.map(({ id }) => String(id));
    },
    async pending(before, limit) {
      const rows = await query(
        "SELECT id FROM jizai_session WHERE lease <= $1 AND (expires IS NULL OR expires > $2) ORDER BY lease LIMIT $3",
        before,
        Date.now(),
        limit,
      );
      return rows.map(({ id }) => String(id));
    },
    async touch(session, until) {
      const { id, version } = session;
      const rows = await query(move, id, version, leaseEndOf(session), until, expiry(expireIn, until), Date.now());
      return rows.length > 0;
    },
  };
  return durable(byDatabaseClock(adapter, async () => Number((await query(time))[0]?.now)));
}

/** Reads the clock. Exported for simulations, which replace it. */
export const time = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now";

/** Inserts a session unless there is one that has not expired. */
const insert = `INSERT INTO jizai_session AS stored (id, version, body, expires, lease) VALUES ($1, 1, $2, $3, $5)
  ON CONFLICT (id) DO UPDATE SET version = 1, body = excluded.body, expires = excluded.expires, lease = excluded.lease
    WHERE stored.expires <= $4
  RETURNING version`;

/** Replaces the version that the caller has read. */
const update = `UPDATE jizai_session SET version = version + 1, body = $2, expires = $3, lease = $5
  WHERE id = $1 AND version = $6 AND (expires IS NULL OR expires > $4) RETURNING version`;

/** Moves the end of the lease that the caller has read. */
const move = `UPDATE jizai_session SET lease = $4, expires = $5
  WHERE id = $1 AND version = $2 AND lease = $3 AND (expires IS NULL OR expires > $6) RETURNING version`;
