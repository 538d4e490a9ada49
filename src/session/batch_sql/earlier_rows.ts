/**
 * Sessions that earlier versions of the package have stored in SQLite: of a file, of a Durable Object, and behind a network.
 *
 * @module
 */
import type { EarlierRow, EarlierRows } from "../earlier_rows.ts";
import { sweepTimer } from "../expiry.ts";
import { entriesOf } from "../pieces.ts";
import type { ExecuteBatch, Row, Statement } from "./batch.ts";

/** The tables, of which a database may have only some, and the queries of their rows of a session. */
const queries: Readonly<Record<string, string>> = {
  jizai_session_piece: "SELECT text FROM jizai_session_piece WHERE id = ? ORDER BY part",
  jizai_session_entry: "SELECT first, part, text FROM jizai_session_entry WHERE id = ? ORDER BY first, part",
  jizai_session: "SELECT * FROM jizai_session WHERE id = ?",
  jizai_session_head: "SELECT * FROM jizai_session_head WHERE id = ?",
};

/** A table with heads of sessions. */
interface Heads {
  readonly table: string;
  /** The columns with the end of the lease, and with the time at which the session expires. */
  readonly due: string;
  readonly gone: string;
  /** The condition of its rows that are heads. */
  readonly where: string;
}

/** Returns the rows in a database. */
export function sqlEarlierRows(execute: ExecuteBatch): EarlierRows {
  let tables: readonly string[] = [];
  let heads: readonly Heads[] = [];
  const isSweepDue = sweepTimer();

  async function rowsOf(...statement: Statement): Promise<readonly Row[]> {
    const [rows = []] = await execute([statement]);
    return rows;
  }

  /** Returns the query of ids with a condition. */
  function select(column: (heads: Heads) => string, condition: (heads: Heads) => string): string {
    const each = heads.map((heads) =>
      `SELECT id, ${column(heads)} AS at FROM ${heads.table} WHERE ${heads.where} AND ${condition(heads)}`
    );
    return `SELECT id FROM (${each.join(" UNION ALL ")})`;
  }

  /** Returns the statements that delete sessions that have expired, 100 a minute. */
  function sweep(now: number): readonly Statement[] {
    if (!isSweepDue()) return [];
    const expired = `${select(({ gone }) => gone, ({ gone }) => `${gone} <= ?1`)} ORDER BY at LIMIT 100`;
    return tables.map((table) => [`DELETE FROM ${table} WHERE id IN (${expired})`, now]);
  }

  return {
    async exist() {
      const found = await rowsOf(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name LIKE 'jizai_session%'",
      );
      const columns = new Map(found.map(({ name, sql }) => [String(name), String(sql)]));
      const has = (column: string) => new RegExp(`\\b${column}\\b`).test(columns.get("jizai_session") ?? "");
      tables = Object.keys(queries).filter((table) => columns.has(table));
      const [table, lease] = ["jizai_session", has("lease") ? "lease" : "NULL"];
      heads = [
        { table, due: lease, gone: "expires", where: `version > 0${has("head") ? " AND head IS NULL" : ""}` },
        ...has("head") ? [{ table, due: "until", gone: "ends", where: "head IS NOT NULL" }] : [],
        ...columns.has("jizai_session_head")
          ? [{ table: "jizai_session_head", due: "until", gone: "ends", where: "TRUE" }]
          : [],
      ];
      return columns.has(table) && (await rowsOf("SELECT 1 FROM jizai_session LIMIT 1")).length > 0;
    },
    async read(key) {
      const now = Date.now();
      const statements = tables.map((table): Statement => [queries[table] ?? "", key]);
      const results = await execute([...statements, ...sweep(now)]);
      const found = (table: string): readonly Row[] => results[tables.indexOf(table)] ?? [];
      const [whole] = found("jizai_session");
      const [row = whole] = found("jizai_session_head");
      return row && rowIn(key, row, found, now);
    },
    async delete(key) {
      await execute(tables.map((table) => [`DELETE FROM ${table} WHERE id = ?`, key]));
    },
    async pending(limit, within) {
      const now = Date.now();
      const query = select(({ due }) => due, ({ due, gone }) => `${due} <= ?1 AND (${gone} IS NULL OR ${gone} > ?2)`);
      const rows = await rowsOf(`${query} ORDER BY at LIMIT ?3`, now + within, now, limit);
      return rows.map(({ id }) => String(id));
    },
    async list(after, limit) {
      const query = select(() => "id", ({ gone }) => `id > ?1 AND (${gone} IS NULL OR ${gone} > ?2)`);
      const rows = await rowsOf(`${query} ORDER BY id LIMIT ?3`, after, Date.now(), limit);
      return rows.map(({ id }) => String(id));
    },
  };
}

/** Returns a row; undefined for one that has expired, or that only kept version 0.1.0 away. */
function rowIn(
  key: string,
  { version, head = null, base, last, until, ends, lease = null, expires = null }: Row,
  found: (table: string) => readonly Row[],
  now: number,
): EarlierRow | undefined {
  const isWhole = head === null;
  const [end, gone] = isWhole ? [lease, expires] : [until, ends];
  if ((gone !== null && Number(gone) <= now) || (isWhole && Number(version) < 0)) return undefined;
  const common = { n: Math.abs(Number(version)), due: end === null ? null : Number(end) - now };
  if (isWhole) {
    return { ...common, head: found("jizai_session_piece").map(({ text }) => text).join(""), base: 1, entries: [] };
  }
  const pieces = found("jizai_session_entry").map(({ first, part, text }) => {
    return { first: Number(first), part: Number(part), text: String(text) };
  });
  const entries = entriesOf(key, pieces, { first: 1, last: Number(last) });
  return { ...common, head: String(head), base: Number(base), entries };
}
