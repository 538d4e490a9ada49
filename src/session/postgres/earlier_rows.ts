/**
 * Sessions that earlier versions of the package have stored in Postgres.
 *
 * @module
 */
import type { EarlierRow, EarlierRows } from "../earlier_rows.ts";
import { sweepTimer } from "../expiry.ts";
import { entriesOf } from "../pieces.ts";
import type { Query, Row } from "./sql.ts";

/** The time of the database. */
const now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

const findColumns = `SELECT table_name, column_name FROM information_schema.columns
  WHERE table_schema = ANY(current_schemas(false)) AND table_name IN ('jizai_session', 'jizai_session_entry')`;

/** Returns the rows in a database. */
export function postgresEarlierRows(query: Query): EarlierRows {
  /** The columns with the ends of leases, and those with the times at which sessions expire. A row has at most one of each. */
  let ends: readonly string[] = [];
  let expiries: readonly string[] = [];
  let hasEntries = false;
  const isSweepDue = sweepTimer();

  const alive = () => expiries.map((column) => `AND coalesce(${column} > ${now}, true)`).join(" ");

  async function sweep(): Promise<void> {
    if (!isSweepDue()) return;
    for (const column of expiries) {
      const rows = await query(`SELECT id FROM jizai_session WHERE ${column} <= ${now} LIMIT 1000`);
      for (const { id } of rows) await remove(String(id));
    }
  }

  async function remove(key: string): Promise<void> {
    const entries = hasEntries ? "WITH gone AS (DELETE FROM jizai_session_entry WHERE id = $1) " : "";
    await query(`${entries}DELETE FROM jizai_session WHERE id = $1`, key);
  }

  return {
    async exist() {
      const found = await query(findColumns);
      const has = (table: string, name: string) =>
        found.some(({ table_name, column_name }) => table_name === table && column_name === name);
      ends = ["lease", "until"].filter((column) => has("jizai_session", column));
      expiries = ["expires", "ends"].filter((column) => has("jizai_session", column));
      hasEntries = has("jizai_session_entry", "id");
      return expiries.length > 0 && (await query("SELECT 1 FROM jizai_session LIMIT 1")).length > 0;
    },
    async read(key) {
      await sweep();
      const [columns, join] = hasEntries
        ? [
          ", entry.first AS first, entry.body AS entries",
          "LEFT JOIN jizai_session_entry entry ON entry.id = session.id",
        ]
        : ["", ""];
      const rows = await query(
        `SELECT session.*, ${now} AS now${columns} FROM jizai_session session ${join} WHERE session.id = $1 ${alive()}
        ${hasEntries ? "ORDER BY entry.first" : ""}`,
        key,
      );
      return rows[0] && rowIn(key, rows[0], rows);
    },
    delete: remove,
    async pending(limit, within) {
      const each = ends.map((column) =>
        `SELECT id, ${column} AS due FROM jizai_session WHERE ${column} <= ${now} + $1::bigint ${alive()}`
      );
      if (each.length === 0) return [];
      const rows = await query(
        `SELECT id FROM (${each.join(" UNION ALL ")}) found ORDER BY due LIMIT $2`,
        within,
        limit,
      );
      return rows.map(({ id }) => String(id));
    },
    async list(after, limit) {
      const rows = await query(
        `SELECT id FROM jizai_session WHERE id > $1 ${alive()} ORDER BY id LIMIT $2`,
        after,
        limit,
      );
      return rows.map(({ id }) => String(id));
    },
  };
}

/** Returns a row. `rows` are those of its entries. */
function rowIn(
  key: string,
  { version, head = null, body, base, last, until = null, lease = null, now }: Row,
  rows: readonly Row[],
): EarlierRow {
  const end = until ?? lease;
  const common = { n: Math.abs(Number(version)), due: end === null ? null : Number(end) - Number(now) };
  if (head === null) return { ...common, head: String(body), base: 1, entries: [] };
  const pieces = rows.flatMap(({ first, entries }) =>
    first === null ? [] : [{ first: Number(first), part: 0, text: String(entries) }]
  );
  const entries = entriesOf(key, pieces, { first: 1, last: Number(last) });
  return { ...common, head: String(head), base: Number(base), entries };
}
