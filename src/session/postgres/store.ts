/**
 * Sessions in Postgres.
 *
 * @module
 */
import { expectNames } from "../../protocol/shape.ts";
import { expiry, versionOf } from "../expiry.ts";
import { byDatabaseClock, durable } from "../durable/mod.ts";
import type { Store, StoreAdapter, StoredHead } from "../../core/store.ts";
import { entriesOf, type EntriesPiece, textOfEntries } from "../pieces.ts";
import { inGroups, type PostgresOptions, type PostgresSql, queryOf, type Row, sweeper } from "./sql.ts";

/**
 * Keeps sessions in Postgres. Each operation is one statement, so it also works through a pooler; saves of many sessions share one. Create the schema with `migrate()` before.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { postgresLog, type PostgresSql, postgresStore } from "@jizai/jizai/session/postgres";
 *
 * const assistant = agent({ model: scripted("Hello!") });
 *
 * // sql: postgres(url, { fetch_types: false }) of postgres.js
 * export const appOn = (sql: PostgresSql) => serve(assistant, { store: postgresStore(sql), log: postgresLog(sql) });
 * ```
 */
export function postgresStore(sql: PostgresSql, options: PostgresOptions = {}): Store {
  expectNames("Cannot create postgresStore()", options, ["expireIn"]);
  const { expireIn = Infinity } = options;
  const query = queryOf(sql);
  const sweep = sweeper(query, sweepSessions, expireIn);
  const replace = inGroups<object>(async (group) => {
    const rows = await query(update, JSON.stringify(group), Date.now());
    return new Set(rows.map(({ id }) => id));
  });
  const adapter: StoreAdapter = {
    async head(id) {
      const [row] = await query(`SELECT * FROM jizai_session WHERE id = $1 AND ${isAlive(2)}`, id, Date.now());
      return row && headOf(row);
    },
    async open(id) {
      const rows = await query(openQuery, id, Date.now());
      const [row] = rows;
      if (!row) return undefined;
      const head = headOf(row);
      const pieces = row.entries_first === null
        ? []
        : rows.map(({ entries_first, entries }) => pieceOf(entries_first, entries));
      return { ...head, entries: entriesOf(id, pieces, { first: head.base, last: head.last }) };
    },
    async entries(id, first, last) {
      if (last < first) return [];
      const rows = await query(entries, id, first, last);
      return entriesOf(id, rows.map(({ first, body }) => pieceOf(first, body)), { first, last });
    },
    async append(id, { from, to, head, entries, first, base, until }) {
      await sweep();
      const body = entries.length > 0 ? textOfEntries(entries) : "";
      const row = {
        id,
        from_holder: from?.holder ?? "",
        from_n: from ? versionOf(from) : 0,
        holder: to.holder,
        n: versionOf(to),
        base,
        last: first + entries.length - 1,
        first,
        body,
        head,
        until: until ?? null,
        moves: until !== undefined,
        keep: expireIn === Infinity ? null : expireIn,
      };
      if (from) return await replace(id, row, body.length + head.length);
      return (await query(insert, JSON.stringify([row]), Date.now())).length > 0;
    },
    async delete(id) {
      await query(
        "WITH gone AS (DELETE FROM jizai_session_entry WHERE id = $1) DELETE FROM jizai_session WHERE id = $1",
        id,
      );
    },
    async list({ after = "", limit = 100 } = {}) {
      const rows = await query(
        `SELECT id FROM jizai_session WHERE id > $1 AND ${isAlive(2)} ORDER BY id LIMIT $3`,
        after,
        Date.now(),
        limit,
      );
      return rows.map(({ id }) => String(id));
    },
    async pending(before, limit) {
      const rows = await query(pending, before, Date.now(), limit);
      return rows.map(({ id }) => String(id));
    },
    async touch({ id, version, lease }, until) {
      if (!lease) return false;
      const rows = await query(move, id, version, Math.trunc(lease.until), until, expiry(expireIn, until), Date.now());
      return rows.length > 0;
    },
  };
  return durable(byDatabaseClock(adapter, async () => Number((await query(time))[0]?.now)));
}

/** Returns the head of a row. That of an earlier version of the package has the whole session as its body, and no entries. */
function headOf({ version, holder, base, last, until, lease, head, body }: Row): StoredHead {
  const end = until ?? lease;
  return {
    mark: { holder: String(holder ?? ""), n: Math.abs(Number(version)) },
    base: Number(base ?? 1),
    last: Number(last ?? 0),
    until: end === null ? null : Number(end),
    head: String(head ?? body),
  };
}

/** Returns the entries of a row. Postgres stores texts of every length. */
function pieceOf(first: unknown, text: unknown): EntriesPiece {
  return { first: Number(first), part: 0, text: String(text) };
}

/** Reads the clock. Exported for simulations, which replace it. */
export const time = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now";

/** Returns the condition that a row has not expired. `at` is the number of the parameter with the time. */
function isAlive(at: number, table = ""): string {
  return `(${table}ends IS NULL OR ${table}ends > $${at}) AND (${table}expires IS NULL OR ${table}expires > $${at})`;
}

/** The rows to store, and the time at which each expires. */
const givenQuery = `WITH given AS MATERIALIZED (
  SELECT *, keep + greatest(until, $2::bigint) AS ends FROM json_to_recordset($1::text::json) AS given(
    id text COLLATE "C", from_holder text, from_n bigint, holder text, n bigint, base bigint, last bigint, first bigint,
    body text, head text, until bigint, moves boolean, keep bigint
  )
)`;

/** The statements that add the entries of the rows in `put`, and return the ids of these rows and of those that had the mark already. */
const added = `, added AS (
  INSERT INTO jizai_session_entry AS stored (id, first, body) SELECT given.id, given.first, given.body
    FROM given JOIN put USING (id) WHERE given.body <> ''
  ON CONFLICT (id, first) DO UPDATE SET body = excluded.body
)
SELECT id FROM put UNION ALL SELECT stored.id FROM jizai_session stored JOIN given
  ON stored.id = given.id AND stored.holder = given.holder AND stored.version = given.n
  AND (stored.ends IS NULL OR stored.ends > $2)`;

/** Inserts a session unless there is one that has not expired, and deletes the entries of one that has. */
const insert = `${givenQuery}, put AS (
  INSERT INTO jizai_session AS stored (id, version, body, holder, base, last, head, until, ends)
    SELECT id, n, '-', holder, base, last, head, until, ends FROM given
  ON CONFLICT (id) DO UPDATE SET version = excluded.version, body = excluded.body, lease = NULL, expires = NULL,
      holder = excluded.holder, base = excluded.base, last = excluded.last, head = excluded.head, until = excluded.until,
      ends = excluded.ends
    WHERE stored.ends <= $2 OR stored.expires <= $2
  RETURNING id
), gone AS (
  DELETE FROM jizai_session_entry WHERE (id, first) IN (
    SELECT stored.id, stored.first FROM jizai_session_entry stored JOIN put USING (id) JOIN given USING (id)
      WHERE stored.first <> given.first OR given.body = ''
  )
)${added}`;

/** Replaces the head that has the mark of the caller. */
const update = `${givenQuery}, put AS (
  UPDATE jizai_session stored SET version = given.n, body = '-', lease = NULL, expires = NULL, holder = given.holder,
      base = given.base, last = given.last, head = given.head,
      until = CASE WHEN given.moves THEN given.until ELSE coalesce(stored.until, stored.lease) END,
      ends = keep + greatest(CASE WHEN given.moves THEN given.until ELSE coalesce(stored.until, stored.lease) END, $2)
    FROM given WHERE stored.id = given.id AND stored.version = given.from_n
      AND coalesce(stored.holder, '') = given.from_holder AND ${isAlive(2, "stored.")}
  RETURNING stored.id
)${added}`;

/** The rows of entries from the one on that contains a number, which is that of a parameter or a column. */
const entriesFrom = (id: string, number: string) =>
  `coalesce((SELECT max(first) FROM jizai_session_entry WHERE id = ${id} AND first <= ${number}), 0)`;

const openQuery = `SELECT session.*, entry.first AS entries_first, entry.body AS entries FROM jizai_session session
  LEFT JOIN jizai_session_entry entry ON entry.id = session.id AND entry.first >= ${entriesFrom("$1", "session.base")}
  WHERE session.id = $1 AND ${isAlive(2, "session.")} ORDER BY entry.first`;

const entries = `SELECT first, body FROM jizai_session_entry
  WHERE id = $1 AND first >= ${entriesFrom("$1", "$2")} AND first <= $3 ORDER BY first`;

/** Reads the ids of ended leases. Those of earlier versions of the package are in a column of their own. */
const pending = `SELECT id FROM (
  SELECT id, until AS due FROM jizai_session WHERE until <= $1 AND (ends IS NULL OR ends > $2)
  UNION ALL SELECT id, lease FROM jizai_session WHERE lease <= $1 AND (expires IS NULL OR expires > $2)
) ended ORDER BY due LIMIT $3`;

/** Moves the end of the lease that the caller has read. */
const move = `UPDATE jizai_session SET
    until = CASE WHEN head IS NULL THEN until ELSE $4 END, ends = CASE WHEN head IS NULL THEN ends ELSE $5 END,
    lease = CASE WHEN head IS NULL THEN $4 ELSE lease END, expires = CASE WHEN head IS NULL THEN $5 ELSE expires END
  WHERE id = $1 AND abs(version) = $2 AND coalesce(until, lease) = $3 AND ${isAlive(6)} RETURNING id`;

/** Deletes 1,000 expired sessions. */
const sweepSessions = `WITH gone AS (
  DELETE FROM jizai_session WHERE id IN (
    (SELECT id FROM jizai_session WHERE ends <= $1 LIMIT 1000) UNION ALL (SELECT id FROM jizai_session WHERE expires <= $1 LIMIT 1000)
  ) AND (ends <= $1 OR expires <= $1) RETURNING id
) DELETE FROM jizai_session_entry WHERE id IN (SELECT id FROM gone)`;
