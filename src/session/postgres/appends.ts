/**
 * Additions to many logs in one statement: Postgres commits one notifying transaction after another, so fewer of them are faster.
 *
 * @module
 */
import { hashOf } from "../../core/lib/json.ts";
import { expiry } from "../expiry.ts";
import type { Addition } from "../log.ts";
import { textOfLines } from "../pieces.ts";
import { inGroups } from "./groups.ts";
import { type Query } from "./sql.ts";

/** An expression for the channel on which the changes of a record are notified. `run` is an expression for the id of the run. */
export function channelIn(run: string): string {
  return `'${prefix}' || left(encode(sha256(convert_to(${run}, 'UTF8')), 'hex'), ${hashLength})`;
}

/** Returns the channel of a run. */
export async function channelOf(run: string): Promise<string> {
  return prefix + (await hashOf(run)).slice(0, hashLength);
}

/** A name of a channel has 63 characters at most. */
const prefix = "jizai_log_";
const hashLength = 32;

/** Returns the function that appends to records. It resolves to false if the record does not end where the writer expects, or has expired. */
export function appender(query: Query, expireIn: number): (run: string, addition: Addition) => Promise<boolean> {
  const append = inGroups<object>(async (group) => {
    const rows = await query(statement, JSON.stringify(group), Date.now());
    return new Set(rows.map(({ run }) => run));
  });
  return (run, { after, lines, ended }) => {
    const body = textOfLines(lines);
    const expires = expiry(expireIn);
    return append(run, { run, after, last: after + lines.length, ended, expires, body }, body.length);
  };
}

/** Appends lines and notifies, for each record that ends where the writer expects it to end and has not expired. */
const statement = `WITH given AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1::text::json) AS given(
      run text COLLATE "C", after bigint, last bigint, ended boolean, expires bigint, body text
    )
  ), head AS (
    INSERT INTO jizai_log AS stored (run, last, ended, expires) SELECT run, last, ended, expires FROM given ORDER BY run
    ON CONFLICT (run) DO UPDATE SET last = excluded.last, ended = excluded.ended, expires = excluded.expires
      WHERE stored.last = (SELECT after FROM given WHERE given.run = excluded.run)
        AND (stored.expires IS NULL OR stored.expires > $2)
    RETURNING run
  ), added AS (
    INSERT INTO jizai_log_lines (run, first, body)
      SELECT given.run, given.after + 1, given.body FROM given JOIN head USING (run) WHERE given.body <> ''
  )
  SELECT head.run, pg_notify(${
  channelIn("head.run")
}, given.last || ' ' || given.ended) FROM head JOIN given USING (run)`;
