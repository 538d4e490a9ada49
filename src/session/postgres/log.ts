/**
 * Logs in Postgres.
 *
 * @module
 */
import { hashOf } from "../../core/lib/json.ts";
import { expectNames } from "../../protocol/shape.ts";
import { expiry } from "../expiry.ts";
import { endIn, followers, type Watcher } from "../followers.ts";
import { type Addition, type DeltaOptions, deltasEveryDefault, type Log, type LogPage } from "../log.ts";
import { collectLines, textOfLines } from "../pieces.ts";
import {
  deleteExpired,
  inGroups,
  type PostgresOptions,
  type PostgresSql,
  type Query,
  queryOf,
  sweeper,
} from "./sql.ts";
import { records } from "../record/records_of.ts";

// Additions to many logs in one statement: Postgres commits one notifying transaction after another, so fewer of them are faster.

/** An expression for the channel on which the changes of a record are notified. `run` is an expression for the id of the run. */
function channelIn(run: string): string {
  return `'${prefix}' || left(encode(sha256(convert_to(${run}, 'UTF8')), 'hex'), ${hashLength})`;
}

/** Returns the channel of a run. */
async function channelOf(run: string): Promise<string> {
  return prefix + (await hashOf(run)).slice(0, hashLength);
}

/** A name of a channel has 63 characters at most. */
const prefix = "jizai_log_";
const hashLength = 32;

/** Returns the function that appends to records. It resolves to false if the record does not end where the writer expects, or has expired. */
function appender(query: Query, expireIn: number): (run: string, addition: Addition) => Promise<boolean> {
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

// The log: events of runs in Postgres, whose followers are notified with LISTEN.

/** Options of `postgresLog()`. */
export interface PostgresLogOptions extends PostgresOptions, DeltaOptions {
  /**
   * Whether to wait for events of other processes with LISTEN, on one more connection. Set it to false for connections through Hyperdrive or a pooler, which
   * do not deliver notifications. Default: true.
   */
  readonly listen?: boolean;
  /**
   * The most milliseconds between two looks for events of other processes. Without `listen`, the looks are eight times as frequent while events arrive, and
   * their interval doubles while none do. Default: 1,000 with `listen`, in case a notification is lost; otherwise 200.
   */
  readonly pollEvery?: number;
}

/**
 * Keeps logs in Postgres. Additions of concurrent runs share statements. An addition notifies the followers in every process. Create the schema with `migrate()` before.
 *
 * ```ts
 * import { postgresLog, type PostgresSql } from "@jizai/jizai/session/postgres";
 *
 * // sql: postgres(url, { fetch_types: false }) of postgres.js
 * export const logOn = (sql: PostgresSql) => postgresLog(sql, { expireIn: 60 * 60 * 1_000 });
 * ```
 */
export function postgresLog(sql: PostgresSql, options: PostgresLogOptions = {}): Log {
  expectNames("Cannot create postgresLog()", options, ["expireIn", "listen", "pollEvery", "deltasEvery"]);
  const { expireIn = Infinity, listen = true, deltasEvery = deltasEveryDefault, pollEvery = listen ? 1_000 : 200 } =
    options;
  const query = queryOf(sql);
  const sweep = sweeper(query, deleteExpired("jizai_log", "run"), expireIn);
  const following = followers({
    read,
    longest: pollEvery,
    shortest: listen ? pollEvery : pollEvery / 8,
    watch: listen ? watch : undefined,
  });
  const add = appender(query, expireIn);

  /** Listens to the channel of a run. */
  async function watch(run: string, { notify }: Watcher): Promise<() => unknown> {
    const onNotify = (payload: string) => notify(endIn(payload));
    // Notifications are lost while the connection is down, so the followers read again once it is back.
    const { unlisten } = await sql.listen(await channelOf(run), onNotify, () => notify());
    return unlisten;
  }

  async function deleteIfExpired(run: string): Promise<boolean> {
    const rows = await query("DELETE FROM jizai_log WHERE run = $1 AND expires <= $2 RETURNING run", run, Date.now());
    return rows.length > 0;
  }

  async function read(run: string, after: number): Promise<LogPage | undefined> {
    const rows = await query(page, run, after, Date.now());
    const [head] = rows;
    if (!head) return undefined;
    const collector = collectLines(after);
    for (const { first, body } of rows) {
      if (body !== null && !collector.add({ first: Number(first), part: 0, text: String(body) })) break;
    }
    return { ...collector.lines(), last: Number(head.last), ended: head.ended === true };
  }

  return {
    records,
    deltasEvery,
    ...(expireIn < Infinity && { renewIn: expireIn / 2 }),
    async append(run, addition) {
      await sweep();
      const done = await add(run, addition) || (await deleteIfExpired(run) && await add(run, addition));
      if (done) following.add(run, addition);
      return done;
    },
    read,
    tail: following.tail,
    async delete(run) {
      await query(remove, run);
      following.remove(run);
    },
  };
}

const remove = `WITH gone AS (DELETE FROM jizai_log WHERE run = $1 RETURNING run)
  SELECT pg_notify(${channelIn("run")}, '') FROM gone`;

/** Reads the head and the next lines in one statement, so that they are of one state of the record. */
const page = `SELECT stored.last, stored.ended, lines.first, lines.body
  FROM jizai_log stored LEFT JOIN jizai_log_lines lines ON lines.run = stored.run AND stored.last > $2::bigint
    AND lines.first >= coalesce((SELECT max(first) FROM jizai_log_lines WHERE run = $1 AND first <= $2::bigint + 1), 0)
  WHERE stored.run = $1 AND (stored.expires IS NULL OR stored.expires > $3)
  ORDER BY lines.first LIMIT 100`;
