/**
 * Journals in SQLite: of a file, of a Durable Object, and behind a network.
 *
 * @module
 */
import {
  type Append,
  expectHead,
  type Journal,
  type JournalPage,
  journalWatchers,
  outcomeOf,
  runStates,
} from "../../core/journal.ts";
import type { Store } from "../../core/store.ts";
import { promiseTry } from "../../stream/tick.ts";
import { storeOf } from "../earlier_rows.ts";
import {
  type DeltaOptions,
  deltasEveryDefault,
  headOf,
  type PackedRow,
  packedRows,
  pageOf,
  rangeOf,
} from "../journal_rows.ts";
import { entriesOf, piecesOf, textOfEntries, textOfLines } from "../pieces.ts";
import { pieceLength, type SqlStorage } from "../sql/storage.ts";
import type { ExecuteBatch, Row, Statement } from "./batch.ts";
import { sqlEarlierRows } from "./earlier_rows.ts";

const tables = ["jizai_journal_event", "jizai_journal_entry", "jizai_journal_ended", "jizai_journal"];

/** Options of journals. */
export interface SqlJournalOptions extends DeltaOptions {
  /**
   * Milliseconds after its last change that an entry expires; for the session of an active run, after the end of its lease.
   * What has expired is not found, and `sweep()` of the app deletes it. Default: never.
   */
  readonly expireIn?: number;
  /** Milliseconds between two looks for changes of other processes. Default: no other process changes them. */
  readonly pollEvery?: number;
}

/** Returns the batches of a database of this process. Each is a transaction; a single statement needs none. `transact` executes those that write. */
export function batchesIn(
  storage: SqlStorage,
  transact = <T>(work: () => T) => promiseTry(() => storage.transactionSync(work)),
): ExecuteBatch {
  return (statements) => {
    const execute = () => statements.map(([query, ...values]) => [...storage.sql.exec(query, ...values)]);
    if (statements.length === 1) return promiseTry(execute);
    const isRead = statements.every(([query]) => query.startsWith("SELECT"));
    return isRead ? promiseTry(() => storage.transactionSync(execute)) : transact(execute);
  };
}

/** Creates a store in a database that has the tables. */
export function sqlStore(execute: ExecuteBatch, options?: SqlJournalOptions): Store {
  return storeOf(sqlJournal(execute, options), sqlEarlierRows(execute));
}

/** Creates journals in a database that has the tables. Each operation is one batch. */
export function sqlJournal(
  execute: ExecuteBatch,
  { expireIn = Infinity, pollEvery, deltasEvery = deltasEveryDefault }: SqlJournalOptions = {},
): Journal {
  const { watch, notify } = journalWatchers();
  function appendStatements(key: string, append: Append, writer: string): readonly Statement[] {
    const { from, to, created = {}, change, events, due } = append;
    const now = Date.now();
    const until = typeof due === "number" ? Math.ceil(now + due) : null;
    const last = events ? events.first + events.lines.length - 1 : null;
    const { run = null, base = null, waiting = null, head = null } = change ?? {};
    const state = change ? runStates.indexOf(change.state) : null;
    const count = change?.entries.length ?? 0;
    const pieces = change ? piecesOf(textOfEntries(change.entries), pieceLength) : [];
    const lines = events ? piecesOf(textOfLines(events.lines), pieceLength) : [];
    const ended: readonly Statement[] = change?.state === "over" && change.run > 0 ? [[noteEnd, key, writer, now]] : [];
    return [...put(), ...pieces.map(entryRow), ...lines.map(eventRow), ...ended, [selectHead, key, now]];

    function put(): readonly Statement[] {
      if (from) {
        const values = [
          to.holder,
          to.n,
          last,
          run,
          state,
          base,
          waiting,
          head,
          count,
          due === undefined ? 1 : 0,
          until,
        ];
        return [[update, ...values, now, writer, key, from.holder, from.n, change?.last ?? null]];
      }
      const { session = null, owner = "", expireIn: own = expireIn } = created;
      const keep = own < Infinity ? own : null;
      const ends = keep === null ? null : Math.max(now, until ?? 0) + keep;
      const properties = [
        key,
        session,
        owner,
        to.holder,
        to.n,
        run,
        state,
        base,
        count,
        last ?? 0,
        waiting,
        until,
        keep,
        ends,
        writer,
        head,
      ];
      const clear = tables.slice(0, 2).map((
        table,
      ): Statement => [`DELETE FROM ${table} WHERE key = ?1 AND ${written}`, key, writer]);
      return [[insert, ...properties, now], ...clear];
    }

    function entryRow(text: string, part: number): Statement {
      return [insertEntry, key, writer, (change?.last ?? 0) + 1, part, text];
    }

    function eventRow(text: string, part: number): Statement {
      return [insertEvent, key, writer, events?.first ?? 1, part, last, text];
    }
  }

  async function append(key: string, addition: Append) {
    expectHead(addition);
    const writer = crypto.randomUUID();
    const results = await execute(appendStatements(key, addition, writer));
    const row = firstIn(results.at(-1));
    if (row?.writer !== writer) return outcomeOf(addition, row && headOf(row, Date.now()));
    notify(key, false);
    return { stored: true, last: Number(row.last) };
  }

  async function packRun(key: string, run: number): Promise<void> {
    for (let after: number | undefined = 0; after !== undefined;) {
      const [rows = []]: readonly (readonly Row[])[] = await execute([[selectPackable, key, run, after]]);
      const { additions, next }: ReturnType<typeof packedRows> = packedRows(rows.map(rowOf), pieceLength);
      for (const { first, old, last, text } of additions) {
        await execute([[pack, key, run, first, old, last, text], [dropPacked, key, run, first, last, text]]);
      }
      after = next;
    }
    await execute([[notePacked, key, run]]);
  }

  async function read(key: string, run: number, after: number): Promise<JournalPage | undefined> {
    const [heads, ends, rows = []] = await execute([
      [selectHead, key, Date.now()],
      ["SELECT max(last) AS last FROM jizai_journal_event WHERE key = ? AND run = ?", key, run],
      [selectEvents, key, run, after + 1],
    ]);
    const row = firstIn(heads);
    const end = Number(firstIn(ends)?.last ?? 0);
    return row && pageOf(headOf(row, Date.now()), { run, after, end }, rows.map(rowOf));
  }

  return {
    watch,
    deltasEvery,
    ...(pollEvery !== undefined && pollEvery < Infinity && { pollEvery }),
    async head(key) {
      const [heads] = await execute([[selectHead, key, Date.now()]]);
      const row = firstIn(heads);
      return row && headOf(row, Date.now());
    },
    async open(key) {
      const [heads, rows = []] = await execute([[selectHead, key, Date.now()], [selectFromBase, key]]);
      const row = firstIn(heads);
      const head = row && headOf(row, Date.now());
      if (!head) return undefined;
      const { session = key, base, last } = head;
      return { ...head, entries: entriesOf(session, rows.map(rowOf), { first: base, last }) };
    },
    async entries(key, first, last) {
      const [heads, rows = []] = await execute([[selectHead, key, Date.now()], [selectEntries, key, first, last]]);
      const row = firstIn(heads);
      const head = row && headOf(row, 0);
      return entriesOf(head?.session ?? key, rows.map(rowOf), rangeOf(head, first, last));
    },
    append,
    async post(key, { run, entry, most = null }) {
      const writer = crypto.randomUUID();
      const now = Date.now();
      const pieces = piecesOf(textOfEntries([entry]), pieceLength);
      const results = await execute([
        [raise, most === null ? 0 : 1, now, writer, key, run, most],
        ...pieces.map((text, part): Statement => [insertMail, key, writer, part, text]),
        [selectHead, key, now],
      ]);
      const row = firstIn(results.at(-1));
      if (row?.writer === writer) {
        notify(key, true);
        return { status: "posted", last: Number(row.last) };
      }
      const isRunning = row && Number(row.run) === run && headOf(row, Date.now()).state === "running";
      return { status: isRunning ? "full" : "over" };
    },
    read,
    async pending(limit, within = 0) {
      const now = Date.now();
      const [rows = []] = await execute([[selectDue, now + within, limit, now]]);
      return rows.map(({ key }) => String(key));
    },
    async list({ owner = "", after = "", limit = 100 } = {}) {
      const [rows = []] = await execute([[selectSessions, owner, after, Date.now(), limit]]);
      return rows.map(({ session }) => String(session));
    },
    pack: packRun,
    async trim(key, run) {
      await execute([["DELETE FROM jizai_journal_event WHERE key = ? AND run < ?", key, run]]);
    },
    async sweep(limit, keep) {
      const now = Date.now();
      const [unpacked = []] = await execute([[selectUnpacked, limit]]);
      for (const { key, unpacked: run } of unpacked) await packRun(String(key), Number(run));
      const [gone = []] = await execute([[selectExpired, now, limit]]);
      if (gone.length > 0) await execute(tables.map((table) => [deleteExpired(table), listOf(gone), now]));
      if (gone.length >= limit) return gone.length;
      const [ended = []] = await execute([[selectEnded, now - keep, limit - gone.length]]);
      if (ended.length > 0) {
        await execute([deleteEvents, deleteEnds].map((each) => [each, listOf(ended), now - keep]));
      }
      return gone.length + ended.length;
    },
    async delete(...keys) {
      const listed = JSON.stringify(keys);
      await execute(
        tables.map((table) => [`DELETE FROM ${table} WHERE key IN (SELECT value FROM json_each(?))`, listed]),
      );
      for (const key of keys) notify(key);
    },
  };
}

function firstIn(rows: readonly Row[] | undefined): Row | undefined {
  return rows?.[0];
}

/** Returns the keys of rows as JSON. */
function listOf(rows: readonly Row[]): string {
  return JSON.stringify(rows.map(({ key }) => key));
}

function rowOf({ first, part, last, text }: Row): PackedRow {
  return { first: Number(first), part: Number(part), last: Number(last), text: String(text) };
}

// Statements. Values are numbered where one is used twice.

const alive = "(expires IS NULL OR expires > ?2)";

const selectHead = `SELECT * FROM jizai_journal WHERE key = ?1 AND ${alive}`;

/** Creates a journal unless there is one that has not expired. */
const insert =
  `INSERT INTO jizai_journal (key, session, owner, holder, n, run, state, base, last, events, waiting, due, keep,
  expires, writer, head) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
  ON CONFLICT (key) DO UPDATE SET session = excluded.session, owner = excluded.owner, holder = excluded.holder, n = excluded.n,
    run = excluded.run, state = excluded.state, base = excluded.base, last = excluded.last, events = excluded.events,
    waiting = excluded.waiting, due = excluded.due, keep = excluded.keep, expires = excluded.expires,
    writer = excluded.writer, head = excluded.head
  WHERE jizai_journal.expires <= ?17`;

/** Moves the mark. Null keeps a column; ?10 is 1 to keep the time at which the journal is due. */
const update = `UPDATE jizai_journal SET holder = ?1, n = ?2,
  events = coalesce(?3, CASE WHEN run = coalesce(?4, run) THEN events ELSE 0 END), run = coalesce(?4, run),
  state = coalesce(?5, state), base = coalesce(?6, base), waiting = coalesce(?7, waiting), head = coalesce(?8, head),
  last = last + ?9, due = CASE WHEN ?10 THEN due ELSE ?11 END,
  expires = keep + max(?12, coalesce(CASE WHEN ?10 THEN due ELSE ?11 END, 0)), writer = ?13
  WHERE key = ?14 AND holder = ?15 AND n = ?16 AND (?17 IS NULL OR last = ?17) AND (expires IS NULL OR expires > ?12)`;

/** Adds a post. */
const raise =
  `UPDATE jizai_journal SET last = last + 1, waiting = waiting + ?1, expires = keep + max(?2, coalesce(due, 0)),
  writer = ?3 WHERE key = ?4 AND run = ?5 AND state = 2 AND (?6 IS NULL OR waiting < ?6) AND (expires IS NULL OR expires > ?2)`;

/** True if the batch has written the row. */
const written = "EXISTS (SELECT 1 FROM jizai_journal WHERE key = ?1 AND writer = ?2)";

const insertEntry = `INSERT INTO jizai_journal_entry (key, first, part, text) SELECT ?1, ?3, ?4, ?5 WHERE ${written}`;

const insertMail = `INSERT INTO jizai_journal_entry (key, first, part, text)
  SELECT key, last, ?3, ?4 FROM jizai_journal WHERE key = ?1 AND writer = ?2`;

const insertEvent = `INSERT INTO jizai_journal_event (key, run, first, part, last, text)
  SELECT key, run, ?3, ?4, ?5, ?6 FROM jizai_journal WHERE key = ?1 AND writer = ?2`;

/** Notes when the last run was over. */
const noteEnd = `INSERT INTO jizai_journal_ended (key, at, unpacked)
  SELECT key, ?3, run FROM jizai_journal WHERE key = ?1 AND writer = ?2
  ON CONFLICT (key) DO UPDATE SET at = excluded.at, unpacked = excluded.unpacked`;

const notePacked = "UPDATE jizai_journal_ended SET unpacked = NULL WHERE key = ?1 AND unpacked = ?2";

const selectUnpacked = "SELECT key, unpacked FROM jizai_journal_ended WHERE unpacked IS NOT NULL LIMIT ?1";

const selectExpired = "SELECT key FROM jizai_journal WHERE expires <= ?1 ORDER BY expires LIMIT ?2";

const selectEnded = "SELECT key FROM jizai_journal_ended WHERE at <= ?1 ORDER BY at LIMIT ?2";

/** Deletes the rows of journals in a list that have expired: one of them may have been created anew meanwhile. */
function deleteExpired(table: string): string {
  return `DELETE FROM ${table} WHERE key IN (
    SELECT key FROM jizai_journal WHERE key IN (SELECT value FROM json_each(?1)) AND expires <= ?2)`;
}

/** Deletes the events of journals in a list whose run is over: another one may have begun, whose end is noted again. */
const deleteEvents = `DELETE FROM jizai_journal_event WHERE key IN (
  SELECT key FROM jizai_journal_ended JOIN jizai_journal USING (key)
  WHERE key IN (SELECT value FROM json_each(?1)) AND at <= ?2 AND state = 0)`;

const deleteEnds = "DELETE FROM jizai_journal_ended WHERE key IN (SELECT value FROM json_each(?1)) AND at <= ?2";

/** Reads the entries from the append on that contains the first one. */
const selectEntries = `SELECT first, part, text FROM jizai_journal_entry WHERE key = ?1 AND first >= coalesce(
  (SELECT max(first) FROM jizai_journal_entry WHERE key = ?1 AND first <= ?2), 0) AND first <= ?3 ORDER BY first, part`;

const selectFromBase = `SELECT first, part, text FROM jizai_journal_entry entry WHERE key = ?1 AND first >= coalesce(
  (SELECT max(first) FROM jizai_journal_entry JOIN jizai_journal head USING (key) WHERE key = ?1 AND first <= head.base), 0)
  ORDER BY first, part`;

/** Reads 50 additions, from the one that contains the event. */
const selectEvents = `SELECT first, part, last, text FROM jizai_journal_event WHERE key = ?1 AND run = ?2
  AND first >= coalesce((SELECT max(first) FROM jizai_journal_event WHERE key = ?1 AND run = ?2 AND first <= ?3), 0)
  AND first <= coalesce((SELECT max(first) FROM (
    SELECT DISTINCT first FROM jizai_journal_event WHERE key = ?1 AND run = ?2 AND first > ?3 ORDER BY first LIMIT 49
  )), 9007199254740991) ORDER BY first, part`;

const selectDue =
  `SELECT key FROM jizai_journal WHERE due <= ?1 AND (expires IS NULL OR expires > ?3) ORDER BY due LIMIT ?2`;

const selectSessions = `SELECT session FROM jizai_journal WHERE owner = ?1 AND session > ?2
  AND (expires IS NULL OR expires > ?3) ORDER BY session LIMIT ?4`;

/** Reads additions of a run that is over. */
const selectPackable =
  `SELECT first, part, last, text FROM jizai_journal_event event WHERE key = ?1 AND run = ?2 AND first > ?3
  AND EXISTS (SELECT 1 FROM jizai_journal WHERE key = ?1 AND (run > ?2 OR state < 2)) ORDER BY first, part LIMIT 500`;

/** Replaces an addition by one that contains those that follow. Nothing happens if it is no longer the same. */
const pack =
  `UPDATE jizai_journal_event SET last = ?5, text = ?6 WHERE key = ?1 AND run = ?2 AND first = ?3 AND part = 0
  AND text = ?4 AND EXISTS (SELECT 1 FROM jizai_journal WHERE key = ?1 AND (run > ?2 OR state < 2))`;

const dropPacked =
  `DELETE FROM jizai_journal_event WHERE key = ?1 AND run = ?2 AND first > ?3 AND first <= ?4 AND EXISTS (
  SELECT 1 FROM jizai_journal_event WHERE key = ?1 AND run = ?2 AND first = ?3 AND part = 0 AND text = ?5)`;
