/**
 * Additions to many logs in one statement: Postgres commits one notifying transaction after another, so fewer of them are faster.
 *
 * @module
 */
import { expiry } from "../expiry.ts";
import type { Addition } from "../log.ts";
import { textOfLines } from "../pieces.ts";
import { type Query } from "./sql.ts";

/** The channel of notifications. */
export const channel = "jizai_log";

/** The most statements at once. Additions that arrive meanwhile go together. */
const mostStatements = 2;

/** The most additions of a statement, and the characters beyond which it takes no more. */
const mostAdditions = 200;
const mostCharacters = 1_000_000;

/** An addition that waits for its statement. */
interface Waiting {
  readonly run: string;
  readonly addition: Addition;
  readonly text: string;
  readonly done: PromiseWithResolvers<boolean>;
}

/** Returns the function that appends to records. It resolves to false if the record does not end where the writer expects, or has expired. */
export function appender(query: Query, expireIn: number): (run: string, addition: Addition) => Promise<boolean> {
  let waiting: Waiting[] = [];
  let statements = 0;

  /** Takes the additions of the next statement: one for each run, since a statement changes a row once. */
  function take(): readonly Waiting[] {
    const taken = new Map<string, Waiting>();
    const left: Waiting[] = [];
    let characters = 0;
    for (const each of waiting) {
      if (taken.has(each.run) || taken.size >= mostAdditions || characters >= mostCharacters) {
        left.push(each);
      } else {
        taken.set(each.run, each);
        characters += each.text.length;
      }
    }
    waiting = left;
    return [...taken.values()];
  }

  /** Appends in one statement. If it fails, each addition is tried alone, so that none fails because of another one. */
  async function append(group: readonly Waiting[]): Promise<void> {
    try {
      const appended = await execute(group);
      for (const { run, done } of group) done.resolve(appended.has(run));
    } catch (error) {
      if (group.length === 1) group[0]?.done.reject(error);
      else await Promise.all(group.map((each) => append([each])));
    }
  }

  /** Returns the runs to which the statement has appended. */
  async function execute(group: readonly Waiting[]): Promise<ReadonlySet<unknown>> {
    const given = group.map(({ run, addition: { after, lines, ended }, text }) => ({
      run,
      after,
      last: after + lines.length,
      ended,
      expires: expiry(expireIn),
      body: text,
      payload: payloadOf(run),
    }));
    const rows = await query(statement, JSON.stringify(given), Date.now());
    return new Set(rows.map(({ run }) => run));
  }

  function flush(): void {
    while (waiting.length > 0 && statements < mostStatements) {
      statements++;
      void append(take()).finally(() => { // append() never rejects: it passes failures to the additions
        statements--;
        flush();
      });
    }
  }

  return (run, addition) => {
    const done = Promise.withResolvers<boolean>();
    waiting.push({ run, addition, text: textOfLines(addition.lines), done });
    if (statements < mostStatements) queueMicrotask(flush); // so that additions of one turn go together
    return done.promise;
  };
}

/** Returns the payload of a notification, which holds 8,000 bytes at most. An empty one notifies every follower. */
export function payloadOf(run: string): string {
  return run.length <= 2_000 ? run : "";
}

/** Appends lines and notifies, for each record that ends where the writer expects it to end and has not expired. */
const statement = `WITH given AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1::text::json) AS given(
      run text COLLATE "C", after bigint, last bigint, ended boolean, expires bigint, body text, payload text
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
  SELECT head.run, pg_notify('${channel}', given.payload) FROM head JOIN given USING (run)`;
