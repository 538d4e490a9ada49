/**
 * Journals as rows: the parts that databases share. Heads by column name, notifications, pages of events, and events in less room.
 *
 * @module
 */
import { type Journal, type JournalHead, type JournalPage, type JournalWatcher, runStates } from "../core/journal.ts";
import { pageLength, type PieceRow, textOfLines, textsOf } from "./pieces.ts";

// Heads.

/** Returns the head in a row. `now` is the time of the database. */
export function headOf(row: Readonly<Record<string, unknown>>, now: number): JournalHead {
  const { session, owner, holder, n, run, state, base, last, events, waiting, due, head } = row;
  return {
    session: session === null ? undefined : String(session),
    owner: owner === "" ? undefined : String(owner),
    mark: { holder: String(holder), n: Number(n) },
    run: Number(run),
    state: runStates[Number(state)] ?? "over",
    base: Number(base),
    last: Number(last),
    events: Number(events),
    waiting: Number(waiting),
    due: due === null ? null : Number(due) - now,
    head: String(head),
  };
}

// Options of stores.

/** An option of the stores of databases. */
export interface DeltaOptions {
  /**
   * Milliseconds for which events that show no progress, such as deltas, wait for those that follow, so that one append stores them together. Live clients receive them
   * in the same steps. The first one after a pause does not wait, and no other event does. Default: 100.
   */
  readonly deltasEvery?: number;
}

/** The default of `deltasEvery`. */
export const deltasEveryDefault = 100;

// Notifications.

/** Subscribes to the changes of a key or channel. Resolves to the function that ends it. */
export type Subscribe = (key: string, watcher: JournalWatcher) => PromiseLike<() => unknown>;

/** Returns a watch for the changes of this process, which `watch` tells, and of others, for which it subscribes. It notifies once the subscription has begun. */
export function subscribedWatch(watch: Journal["watch"], subscribe: Subscribe): Journal["watch"] {
  return (key, { notify, fail }) => {
    let hasEnded = false;
    const watcher: JournalWatcher = {
      notify: (isPost) => void (hasEnded || notify(isPost)),
      fail: (error) => void (hasEnded || fail(error)),
    };
    const end = watch(key, watcher);
    const subscription = Promise.resolve(subscribe(key, watcher));
    subscription.then(() => watcher.notify(), watcher.fail);
    return () => {
      if (hasEnded) return;
      hasEnded = true;
      end();
      subscription.then((unsubscribe) => unsubscribe()).catch(() => {}); // the watcher has left, and a failure to begin was passed to it
    };
  };
}

// Pages of events.

/** Returns the range of entries from `first` to `last` that a journal has. */
export function rangeOf(head: Pick<JournalHead, "last"> | undefined, first: number, last: number) {
  return { first: Math.max(first, 1), last: Math.min(last, head?.last ?? 0) };
}

/** The part of a run's events that is read. */
interface EventRange {
  readonly run: number;
  /** The number of the event before the first one to return. */
  readonly after: number;
  /** The number of the run's last event that is stored; 0: there is none. */
  readonly end: number;
}

/** Returns a page of a run's events. `rows` are the pieces of additions from the one on that contains the first event, without a gap. */
export function pageOf(
  head: JournalHead,
  { run, after, end }: EventRange,
  rows: readonly PackedRow[],
): JournalPage | undefined {
  if (run < 1 || run > head.run || (run < head.run && end === 0)) return undefined;
  const { session, owner } = head;
  const last = run < head.run ? end : head.events;
  const over = run < head.run || head.state !== "running";
  const page = end === 0 ? { first: Math.max(last, after) + 1, lines: [] } : joinedLines(rows, after);
  return { ...page, last, over, session, owner };
}

// Events in less room: neighbouring deltas of a part become one line, from which each is restored as it was.

/** A line that ends with a text. The text stays escaped, and equal beginnings have equal ends in JSON, so that cuts change nothing. */
const deltaForm = /^(\{.*"text":")((?:[^"\\]|\\.)*)("\}+)$/;

/** Packs lines. A packed line begins with "~" and the lengths of its texts, which no JSON does. */
function packLines(lines: readonly string[]): readonly string[] {
  const packed: string[] = [];
  let [begin, text, end] = ["", "", ""];
  let lengths: number[] = [];

  function flush(): void {
    if (lengths.length > 0) packed.push(`${lengths.length > 1 ? `~${lengths.join()}` : ""}${begin}${text}${end}`);
    lengths = [];
  }

  for (const line of lines) {
    const [, head, piece = "", tail = ""] = deltaForm.exec(line) ?? [];
    if (head !== begin || tail !== end) flush();
    if (head === undefined) {
      flush();
      packed.push(line);
    } else {
      text = lengths.length === 0 ? piece : text + piece;
      [begin, end] = [head, tail];
      lengths.push(piece.length);
    }
  }
  flush();
  return packed;
}

/** Restores packed lines. */
function unpackLines(lines: readonly string[]): readonly string[] {
  return lines.flatMap((line) => {
    if (!line.startsWith("~")) return [line];
    const brace = line.indexOf("{");
    const [, begin = "", text = "", end = ""] = deltaForm.exec(line.slice(brace)) ?? [];
    let at = 0;
    return line.slice(1, brace).split(",").map((length) => `${begin}${text.slice(at, at += Number(length))}${end}`);
  });
}

/** A piece of an addition of events. */
export interface PackedRow extends PieceRow {
  /** The number of the last event of the addition. */
  readonly last: number;
}

/** Joins the pieces of additions, which are in order and without a gap, to the events after event `after`: a page of them. */
function joinedLines(
  rows: readonly PackedRow[],
  after: number,
): { readonly first: number; readonly lines: readonly string[] } {
  const lines: string[] = [];
  let length = 0;
  let end: number | undefined;
  for (const [first, text] of textsOf(rows)) {
    if (length >= pageLength) break;
    if (first > (end ?? first)) throw lostEvents();
    const added = linesIn(text);
    end = first + added.length;
    for (const line of added.slice(Math.max(after + 1 - first, 0))) lines.push(line);
    length += text.length;
  }
  return { first: Math.max(after + 1, rows[0]?.first ?? 0), lines };
}

/** Returns the error of a run whose events are not whole: without it, they would have wrong numbers. */
function lostEvents(): Error {
  return new Error("Cannot read events: the database has lost events that it had accepted");
}

/** An addition that takes the place of others: from the one at `first`, whose text is `old`, to the one that ends with event `last`. */
interface PackedAddition {
  readonly first: number;
  readonly old: string;
  readonly last: number;
  readonly text: string;
}

/**
 * Packs neighbouring additions together, up to `most` characters of their lines. `next` is the number after which more rows are to be read. An addition of several
 * pieces stays as it is: a piece that is no whole addition has `most` characters, or one less.
 */
export function packedRows(
  rows: readonly PackedRow[],
  most: number,
): { readonly additions: readonly PackedAddition[]; readonly next: number | undefined } {
  const additions: PackedAddition[] = [];
  let open: { readonly row: PackedRow; last: number; readonly lines: string[]; length: number } | undefined;

  function flush(): void {
    if (open) {
      const { row: { first, text: old }, last, lines } = open;
      const text = textOfLines(packLines(lines));
      if (text !== old) additions.push({ first, old, last, text });
    }
    open = undefined;
  }

  for (const row of rows) {
    const lines = row.part === 0 && row.text.length < most - 1 ? linesIn(row.text) : undefined;
    const length = lines?.reduce((sum, line) => sum + line.length, 0) ?? Infinity;
    if (!open || open.length + length > most) flush();
    if (open) {
      open.last = row.last;
      open.length += length;
      for (const line of lines ?? []) open.lines.push(line);
    } else if (lines) open = { row, last: row.last, lines: [...lines], length };
  }
  flush();
  return { additions, next: rows.at(-1)?.first };
}

/** Returns the events of an addition. */
function linesIn(text: string): readonly string[] {
  return unpackLines(text.slice(0, -1).split("\n"));
}
