/**
 * Sessions in Postgres.
 *
 * @module
 */
import {
  type Append,
  type Appended,
  expectHead,
  type Journal,
  type JournalHead,
  type JournalPage,
  type JournalWatcher,
  journalWatchers,
  outcomeOf,
  runStates,
} from "../../core/journal.ts";
import { clockOffset } from "../database_clock.ts";
import {
  deltasEveryDefault,
  headOf,
  type PackedRow,
  packedRows,
  pageOf,
  rangeOf,
  subscribedWatch,
} from "../journal_rows.ts";
import { entriesOf, type PieceRow, textOfEntries, textOfLines } from "../pieces.ts";
import type { Store } from "../../core/store.ts";
import { expectNames } from "../../protocol/shape.ts";
import { storeOf } from "../earlier_rows.ts";
import { postgresEarlierRows } from "./earlier_rows.ts";
import { inGroups, type PostgresOptions, type PostgresSql, queryOf, type Row } from "./sql.ts";

/** Options of `postgresStore()`. */
export interface PostgresStoreOptions extends PostgresOptions {
  /**
   * Whether to wait for changes of other processes with LISTEN, on one more connection. Set it to false for connections through Hyperdrive or a pooler, which
   * do not deliver notifications. Default: true.
   */
  readonly listen?: boolean;
  /** Milliseconds between two looks for changes of other processes. Default: 1,000 with `listen`, in case a notification is lost; otherwise 200. */
  readonly pollEvery?: number;
}

/**
 * Keeps sessions in Postgres. Each operation is one statement, so it also works through a pooler; changes of many sessions share one. Create the schema with
 * `migrate()` before.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { type PostgresSql, postgresStore } from "@jizai/jizai/session/postgres";
 *
 * const assistant = agent({ model: scripted("Hello!") });
 *
 * // sql: postgres(url) of postgres.js
 * export const appOn = (sql: PostgresSql) => serve(assistant, { store: postgresStore(sql) });
 * ```
 */
export function postgresStore(sql: PostgresSql, options: PostgresStoreOptions = {}): Store {
  expectNames("Cannot create postgresStore()", options, ["expireIn", "listen", "pollEvery", "deltasEvery"]);
  return storeOf(postgresJournal(sql, options), postgresEarlierRows(queryOf(sql)));
}

// Journals in Postgres.

/** Reads the clock. Exported for simulations, which replace it. */
export const time = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now";

/** The most characters of an addition of events that is packed with others. */
const packedLength = 100_000;

/** Creates journals in a database that has the tables. Each operation is one statement, and appends to many journals share one. Times are those of the database. */
export function postgresJournal(
  sql: PostgresSql,
  { expireIn = Infinity, listen = true, pollEvery = listen ? 1_000 : 200, deltasEvery = deltasEveryDefault }:
    PostgresStoreOptions = {},
): Journal {
  const query = queryOf(sql);
  const { watch, notify } = journalWatchers();
  const clock = clockOffset(async () => Number((await query(time))[0]?.now));
  const now = async () => Date.now() + await clock.ahead();
  /** The number of the last entry of journals that a statement has changed. */
  const lasts = new Map<string, number>();
  const move = inGroups<object>(async (group) => {
    const rows = await query(update, JSON.stringify(group), await now());
    for (const { key, last } of rows) lasts.set(String(key), Number(last));
    return new Set(rows.map(({ key }) => key));
  });

  /** Listens to the changes of all processes. Notifications are lost while the connection is down, so watchers look again once it is back. */
  async function subscribe(key: string, { notify }: JournalWatcher): Promise<() => unknown> {
    const { unlisten } = await sql.listen(channel + key, (payload) => notify(payload === post), () => notify());
    return unlisten;
  }

  async function head(key: string): Promise<JournalHead | undefined> {
    const at = await now();
    const [row] = await query(selectHead, key, at);
    return row && headOf(row, at);
  }

  async function append(key: string, addition: Append): Promise<Appended | undefined> {
    expectHead(addition);
    const row = rowOf(key, addition, await now());
    const length = row.entries.length + row.lines.length + (row.head?.length ?? 0);
    const isStored = addition.from ? await move(key, row, length) : await create(key, row);
    if (!isStored) return outcomeOf(addition, await head(key));
    notify(key, false);
    const last = lasts.get(key) ?? row.count;
    lasts.delete(key);
    return { stored: true, last };
  }

  function rowOf(key: string, { from, to, created = {}, change, events, due }: Append, at: number) {
    const { session = null, owner = "", expireIn: own = expireIn } = created;
    return {
      key,
      session,
      owner,
      from_holder: from?.holder ?? "",
      from_n: from?.n ?? 0,
      holder: to.holder,
      n: to.n,
      run: change?.run ?? null,
      state: change ? runStates.indexOf(change.state) : null,
      base: change?.base ?? null,
      waiting: change?.waiting ?? null,
      head: change?.head ?? null,
      known: change?.last ?? null,
      count: change?.entries.length ?? 0,
      entries: change ? textOfEntries(change.entries) : "",
      first: events?.first ?? 1,
      events: events ? events.first + events.lines.length - 1 : null,
      lines: events ? textOfLines(events.lines) : "",
      moves: due !== undefined,
      due: typeof due === "number" ? Math.ceil(at + due) : null,
      keep: own < Infinity ? Math.ceil(own) : null,
    };
  }

  async function create(key: string, row: object): Promise<boolean> {
    const inserted = async () => (await query(insert, JSON.stringify([row]), await now())).length > 0;
    if (await inserted()) return true;
    const gone = await query(
      "DELETE FROM jizai_journal WHERE key = $1 AND expires <= $2 RETURNING key",
      key,
      await now(),
    );
    return gone.length > 0 && await inserted();
  }

  async function packRun(key: string, run: number): Promise<void> {
    for (let after: number | undefined = 0; after !== undefined;) {
      const rows: readonly Row[] = await query(selectPackable, key, run, after);
      const { additions, next }: ReturnType<typeof packedRows> = packedRows(
        rows.map(({ first, last, body }) => eventsOf(first, last, body)),
        packedLength,
      );
      for (const { first, old, last, text } of additions) await query(pack, key, run, first, last, old, text);
      after = next;
    }
    await query("UPDATE jizai_journal_ended SET unpacked = NULL WHERE key = $1 AND unpacked = $2", key, run);
  }

  return {
    watch: listen ? subscribedWatch(watch, subscribe) : watch,
    pollEvery,
    deltasEvery,
    head,
    async open(key) {
      const at = await now();
      const rows = await query(open, key, at);
      const [row] = rows;
      const found = row && headOf(row, at);
      if (!found) return undefined;
      const { session = key, base, last } = found;
      return { ...found, entries: entriesOf(session, piecesIn(rows), { first: base, last }) };
    },
    async entries(key, first, last) {
      const rows = await query(selectEntries, key, await now(), first, last);
      const [row] = rows;
      return entriesOf(
        String(row?.session ?? key),
        piecesIn(rows),
        rangeOf({ last: Number(row?.end ?? 0) }, first, last),
      );
    },
    append,
    async post(key, { run, entry, most = null }) {
      const body = textOfEntries([entry]);
      const [row] = await query(raise, key, await now(), run, most, most === null ? 0 : 1, body);
      if (row) {
        notify(key, true);
        return { status: "posted", last: Number(row.last) };
      }
      const found = await head(key);
      return { status: found?.run === run && found.state === "running" ? "full" : "over" };
    },
    async read(key, run, after): Promise<JournalPage | undefined> {
      const at = await now();
      const rows = await query(page, key, at, run, after + 1);
      const [row] = rows;
      const range = { run, after, end: Number(row?.upto ?? 0) };
      const found = rows.filter(({ event_first }) => event_first !== null);
      const additions = found.map(({ event_first, event_last, body }) => eventsOf(event_first, event_last, body));
      return row && pageOf(headOf(row, at), range, additions);
    },
    async pending(limit, within = 0) {
      const at = await now();
      const rows = await query(selectDue, at + within, limit, at);
      return rows.map(({ key }) => String(key));
    },
    async list({ owner = "", after = "", limit = 100 } = {}) {
      const rows = await query(selectSessions, owner, await now(), after, limit);
      return rows.map(({ session }) => String(session));
    },
    pack: packRun,
    async trim(key, run) {
      await query("DELETE FROM jizai_journal_event WHERE key = $1 AND run < $2", key, run);
    },
    async sweep(limit, keep) {
      const unpacked = await query(
        "SELECT key, unpacked FROM jizai_journal_ended WHERE unpacked IS NOT NULL LIMIT $1",
        limit,
      );
      for (const { key, unpacked: run } of unpacked) await packRun(String(key), Number(run));
      const at = await now();
      const gone = await query(deleteExpired, at, limit);
      const ended = gone.length < limit ? await query(deleteEnded, at - keep, limit - gone.length) : [];
      return gone.length + ended.length;
    },
    async delete(...keys) {
      await query(remove, JSON.stringify(keys));
      for (const key of keys) notify(key);
    },
  };
}

/** The beginning of the channel of a journal. */
const channel = "jizai_journal_";

/** The payload of the notification of a post. */
const post = "post";

/** Returns the entries of rows, which have none if the first one lacks them. */
function piecesIn(rows: readonly Row[]): readonly PieceRow[] {
  return rows.flatMap(({ first, body }) =>
    first === null ? [] : [{ first: Number(first), part: 0, text: String(body) }]
  );
}

function eventsOf(first: unknown, last: unknown, text: unknown): PackedRow {
  return { first: Number(first), part: 0, last: Number(last), text: String(text) };
}

// Statements.

/** Returns the condition that a journal has not expired. `at` is the number of the parameter with the time. */
function isAlive(at: number, table = "head"): string {
  return `(${table}.expires IS NULL OR ${table}.expires > $${at})`;
}

const given = `WITH given AS MATERIALIZED (
  SELECT * FROM json_to_recordset($1::text::json) AS given(
    key text COLLATE "C", session text, owner text, from_holder text, from_n bigint, holder text, n bigint, run bigint, state bigint,
    base bigint, waiting bigint, head text, known bigint, count bigint, entries text, first bigint, events bigint, lines text,
    moves boolean, due bigint, keep bigint
  )
)`;

/** Adds the entries and events of the journals in `put`, notes which runs are over, and notifies. */
const added = `, entry AS (
  INSERT INTO jizai_journal_entry (key, first, body)
    SELECT put.key, given.known + 1, given.entries FROM put JOIN given USING (key) WHERE given.entries <> ''
), event AS (
  INSERT INTO jizai_journal_event (key, run, first, last, body)
    SELECT put.key, put.run, given.first, given.events, given.lines FROM put JOIN given USING (key) WHERE given.lines <> ''
), ended AS (
  INSERT INTO jizai_journal_ended (key, at, unpacked)
    SELECT put.key, $2::bigint, put.run FROM put JOIN given USING (key) WHERE given.state = 0 AND put.run > 0
  ON CONFLICT (key) DO UPDATE SET at = excluded.at, unpacked = excluded.unpacked
)
SELECT key, last, pg_notify('${channel}' || key, '') FROM put`;

const insert = `${given}, put AS (
  INSERT INTO jizai_journal (key, session, owner, holder, n, run, state, base, last, events, waiting, due, keep, expires, head)
    SELECT key, session, owner, holder, n, run, state, base, count, coalesce(events, 0), waiting, due, keep,
      keep + greatest($2::bigint, due), head FROM given
  ON CONFLICT (key) DO NOTHING RETURNING key, run, last
)${added}`;

/** Moves marks. Null keeps a column. */
const update = `${given}, put AS (
  UPDATE jizai_journal head SET holder = given.holder, n = given.n,
      events = coalesce(given.events, CASE WHEN head.run = coalesce(given.run, head.run) THEN head.events ELSE 0 END),
      run = coalesce(given.run, head.run), state = coalesce(given.state, head.state), base = coalesce(given.base, head.base),
      waiting = coalesce(given.waiting, head.waiting), head = coalesce(given.head, head.head), last = head.last + given.count,
      due = CASE WHEN given.moves THEN given.due ELSE head.due END,
      expires = head.keep + greatest($2::bigint, CASE WHEN given.moves THEN given.due ELSE head.due END)
    FROM given WHERE head.key = given.key AND head.holder = given.from_holder AND head.n = given.from_n
      AND (given.known IS NULL OR head.last = given.known) AND ${isAlive(2)}
  RETURNING head.key, head.run, head.last
)${added}`;

/** Adds a post. */
const raise = `WITH put AS (
  UPDATE jizai_journal head SET last = last + 1, waiting = waiting + $5, expires = keep + greatest($2::bigint, due)
    WHERE key = $1 AND run = $3 AND state = 2 AND ($4::bigint IS NULL OR waiting < $4) AND ${
  isAlive(2)
} RETURNING key, last
), entry AS (
  INSERT INTO jizai_journal_entry (key, first, body) SELECT key, last, $6::text FROM put
)
SELECT last, pg_notify('${channel}' || key, '${post}') FROM put`;

const remove = `WITH gone AS (
  DELETE FROM jizai_journal WHERE key IN (SELECT json_array_elements_text($1::text::json)) RETURNING key
)
  SELECT pg_notify('${channel}' || key, '') FROM gone`;

// Sweeps. What another sweep deletes at the same time is skipped.

const deleteExpired = `WITH found AS MATERIALIZED (
  SELECT key FROM jizai_journal WHERE expires <= $1 ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED
)
DELETE FROM jizai_journal head USING found WHERE head.key = found.key RETURNING head.key`;

/** Deletes the events of runs that are over. If another run has begun, its end is noted again. */
const deleteEnded = `WITH found AS MATERIALIZED (
  SELECT key FROM jizai_journal_ended WHERE at <= $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED
), event AS (
  DELETE FROM jizai_journal_event event USING found, jizai_journal head
    WHERE event.key = found.key AND head.key = found.key AND head.state = 0
)
DELETE FROM jizai_journal_ended ended USING found WHERE ended.key = found.key RETURNING ended.key`;

const selectHead = `SELECT * FROM jizai_journal head WHERE key = $1 AND ${isAlive(2)}`;

/** The number of the first entry of the append that contains an entry. */
const firstOf = (number: string) =>
  `coalesce((SELECT max(first) FROM jizai_journal_entry WHERE key = $1 AND first <= ${number}), 0)`;

const open = `SELECT head.*, entry.first, entry.body FROM jizai_journal head
  LEFT JOIN jizai_journal_entry entry ON entry.key = head.key AND entry.first >= ${firstOf("head.base")}
  WHERE head.key = $1 AND ${isAlive(2)} ORDER BY entry.first`;

const selectEntries = `SELECT head.last AS end, head.session, entry.first, entry.body FROM jizai_journal head
  LEFT JOIN jizai_journal_entry entry ON entry.key = head.key AND entry.first >= ${firstOf("$3")} AND entry.first <= $4
  WHERE head.key = $1 AND ${isAlive(2)} ORDER BY entry.first`;

/** Reads a head and 100 additions of events, from the one that contains an event. */
const page = `SELECT head.*, event.first AS event_first, event.last AS event_last, event.body,
    (SELECT max(last) FROM jizai_journal_event WHERE key = $1 AND run = $3) AS upto
  FROM jizai_journal head LEFT JOIN jizai_journal_event event ON event.key = head.key AND event.run = $3 AND event.first >=
    coalesce((SELECT max(first) FROM jizai_journal_event WHERE key = $1 AND run = $3 AND first <= $4), 0)
  WHERE head.key = $1 AND ${isAlive(2)} ORDER BY event.first LIMIT 100`;

const selectDue = `SELECT key FROM jizai_journal head WHERE due <= $1 AND ${isAlive(3)} ORDER BY due LIMIT $2`;

const selectSessions = `SELECT session FROM jizai_journal head WHERE owner = $1 AND session > $3 AND ${isAlive(2)}
  ORDER BY session LIMIT $4`;

const isOver = "EXISTS (SELECT 1 FROM jizai_journal WHERE key = $1 AND (run > $2 OR state < 2))";

const selectPackable =
  `SELECT first, last, body FROM jizai_journal_event WHERE key = $1 AND run = $2 AND first > $3 AND ${isOver}
  ORDER BY first LIMIT 500`;

/** Replaces an addition by one that contains those that follow. Nothing happens if it is no longer the same. */
const pack = `WITH put AS (
  UPDATE jizai_journal_event SET last = $4, body = $6 WHERE key = $1 AND run = $2 AND first = $3 AND body = $5 AND ${isOver}
  RETURNING key
)
DELETE FROM jizai_journal_event WHERE key = $1 AND run = $2 AND first > $3 AND first <= $4 AND EXISTS (SELECT 1 FROM put)`;
