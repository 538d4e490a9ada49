/**
 * Parts of the laws of journals: sample appends, and a plain model that random operations are compared with.
 *
 * @module
 */
import {
  type Append,
  type Appended,
  type Journal,
  type JournalChange,
  type JournalEntry,
  type JournalHead,
  type JournalLines,
  type MailEntry,
  type Mark,
  type NumberedJournalEntry,
  type OpenedJournal,
  outcomeOf,
  type Post,
  type Posted,
} from "../../core/journal.ts";
import { user } from "../../protocol/message.ts";
import { type Expect, oddText, randomNumbers } from "./laws.ts";

// Sample appends, of the journal that most laws use.

/** The key of the journal. */
export const key = "0123456789abcdefghij_-";

/** Returns a mark. */
export function at(holder: string, n = 1): Mark {
  return { holder, n };
}

/** Returns a change that appends texts as messages after entry `last`. */
export function change(last: number, texts: readonly string[] = [], other: Partial<JournalChange> = {}): JournalChange {
  const entries = texts.map((text): JournalEntry => ({ type: "message", message: user(text) }));
  const head = JSON.stringify({ last, oddText });
  return { run: 1, state: "running", base: 1, waiting: 0, head, last, entries, ...other };
}

/** Returns the append of holder "a" that creates the session "s" with texts. */
export function creation(texts: readonly string[] = [], more: Partial<Append> = {}): Append {
  return { from: undefined, to: at("a"), created: { session: "s" }, change: change(0, texts), ...more };
}

/** Returns the append of holder "a" after its append number `n`. */
export function next(n: number, more: Partial<Append> = {}): Append {
  return { from: at("a", n), to: at("a", n + 1), ...more };
}

/** Returns events from number `first` on. */
export function events(first: number, ...lines: readonly string[]): JournalLines {
  return { first, lines };
}

/** Returns a message of another process to run 1. */
export function post(id: string, { text = id, ...more }: Partial<Post> & { readonly text?: string } = {}): Post {
  const entry: MailEntry = { type: "mail", id, mail: { type: "message", message: user(text) } };
  return { run: 1, entry, ...more };
}

// Comparing what a journal returns.

/** Returns an entry in short: the text of a message, or the id of mail. */
export function brief([number, entry]: NumberedJournalEntry): string {
  const [part] = entry.type === "message" && entry.message.role === "user" ? entry.message.parts : [];
  return `${number} ${part?.type === "text" ? part.text : entry.type === "mail" ? entry.id : entry.type}`;
}

/** Returns texts with their numbers. */
export function numbered(texts: readonly string[]): readonly string[] {
  return texts.map((text, index) => `${index + 1} ${text}`);
}

/** Compares what every instance returns of the journal with its entries in short, and with some fields of its head. */
export async function expectStored(
  all: readonly Journal[],
  expect: Expect,
  texts: readonly string[] | undefined,
  fields: Partial<OpenedJournal> = {},
): Promise<void> {
  for (const journal of all) {
    const [opened, head] = [await journal.open(key), await journal.head(key)];
    expect("whether head() and open() find it", [!!head, !!opened], [!!texts, !!texts]);
    if (!opened || !head || !texts) continue;
    const { entries, due: _, ...rest } = opened;
    const { due: __, ...same } = head;
    expect("the fields of open() and head()", rest, same);
    expect("the entries of open()", entries.map(brief), numbered(texts).slice(opened.base - 1));
    expect("the last entry", opened.last, texts.length);
    for (const [name, value] of Object.entries(fields)) {
      expect(`"${name}" of head()`, head[name as keyof typeof head], value); // a name of `fields`
    }
  }
}

/** Returns all lines of a run after event `after`, page by page, each with its number. */
export async function linesOf(journal: Journal, run: number, after = 0): Promise<readonly string[]> {
  const lines: string[] = [];
  for (let last = after;;) {
    const page = await journal.read(key, run, last);
    lines.push(...page?.lines.map((line, index) => `${page.first + index} ${line}`) ?? []);
    last = page ? page.first + page.lines.length - 1 : last;
    if (!page || page.lines.length === 0 || last >= page.last) return lines;
  }
}

/** The `keep` of a sweep for every run that is over now: the clocks of instances may differ. */
export const overNow = -60_000;

/** Sweeps what has expired, and the events of all runs that are over, in small steps. */
export async function sweepAll(journal: Journal): Promise<void> {
  for (let left = 2; left >= 2;) left = await journal.sweep(2, overNow);
}

// The plain model.

/** A journal of the model. `due` is the sign of the time: callers compare whether a journal is due, not when. */
interface Modelled extends JournalHead {
  readonly entries: readonly NumberedJournalEntry[];
  /** Whether a sweep deletes its events, if its run is still over. */
  readonly ended: boolean;
  /** The events, by run, after those that were never stored. */
  readonly runs: ReadonlyMap<number, { readonly before: number; readonly lines: readonly string[] }>;
}

/** The model: journals as plain values, changed by the rules of the port. */
class JournalModel {
  readonly journals = new Map<string, Modelled>();

  append(key: string, append: Append): Appended | undefined {
    const { from, to, created: { session, owner } = {}, change, events, due } = append;
    const found = this.journals.get(key);
    const isNext = found ? sameMark(found.mark, from) : from === undefined;
    if (!isNext || (found && change && change.last !== found.last)) return outcomeOf(append, found);
    const none = {
      run: 0,
      state: "over",
      base: 1,
      waiting: 0,
      head: "",
      last: 0,
      events: 0,
      due: null,
      ended: false,
    } as const;
    const old: Modelled = found ?? { session, owner, mark: to, ...none, entries: [], runs: new Map() };
    const { run, state, base, waiting, head } = change ?? old;
    const entries = [
      ...old.entries,
      ...change?.entries.map((entry, index) => [old.last + 1 + index, entry] as const) ?? [],
    ];
    const first = events?.first ?? (run === old.run ? old.events + 1 : 1);
    const { before, lines } = old.runs.get(run) ?? { before: first - 1, lines: [] };
    const runs = new Map(old.runs).set(run, { before, lines: [...lines, ...events?.lines ?? []] });
    const last = entries.length;
    this.journals.set(key, {
      ...old,
      mark: to,
      ...{ run, state, base, waiting, head, last, entries, runs },
      events: first - 1 + (events?.lines.length ?? 0),
      due: due === undefined ? old.due : due,
      ended: change ? state === "over" && run > 0 : old.ended,
    });
    return { stored: true, last };
  }

  post(key: string, { run, entry, most }: Parameters<Journal["post"]>[1]): Posted {
    const found = this.journals.get(key);
    if (!found || found.run !== run || found.state !== "running") return { status: "over" };
    if (most !== undefined && found.waiting >= most) return { status: "full" };
    const last = found.last + 1;
    const waiting = found.waiting + (most === undefined ? 0 : 1);
    this.journals.set(key, { ...found, last, waiting, entries: [...found.entries, [last, entry]] });
    return { status: "posted", last };
  }

  trim(key: string, run: number): void {
    const found = this.journals.get(key);
    if (found) this.journals.set(key, { ...found, runs: new Map([...found.runs].filter(([number]) => number >= run)) });
  }

  sweep(): void {
    for (const [key, found] of this.journals) {
      const { run, events: before, ended } = found;
      if (ended) this.journals.set(key, { ...found, ended: false, runs: new Map([[run, { before, lines: [] }]]) });
    }
  }
}

function sameMark(a: Mark, b: Mark | undefined): boolean {
  return a.holder === b?.holder && a.n === b.n;
}

// Random operations.

const keys = ["k1", "k2"].map((key) => key.padEnd(22, "x"));

/** Random operations of several instances on one database, compared with the model. */
export class JournalHistory {
  readonly #instances: readonly Journal[];
  readonly #expect: Expect;
  readonly #seed: number;
  readonly #below: (end: number) => number;
  readonly #model = new JournalModel();
  /** The appends that were made, which are repeated now and then. */
  readonly #made = new Map<string, Append>();
  #steps = 0;

  constructor(instances: readonly Journal[], expect: Expect, seed: number) {
    this.#instances = instances;
    this.#seed = seed;
    this.#below = randomNumbers(seed);
    this.#expect = (subject, seen, expected) =>
      expect(`${subject} after step ${this.#steps} of seed ${seed}`, seen, expected);
  }

  async step(): Promise<void> {
    this.#steps++;
    const key = `${this.#one(keys).slice(0, 19)}${this.#seed}`.padEnd(22, "y"); // each seed has its own journals
    const journal = this.#one(this.#instances);
    const kind = this.#below(20);
    if (kind < 10) await this.#append(journal, key);
    else if (kind < 14) await this.#post(journal, key);
    else if (kind < 18) await this.#read(journal, key);
    else if (kind === 18) await this.#trim(journal, key);
    else if (this.#below(3) === 0) {
      await sweepAll(journal);
      this.#model.sweep();
    } else if (this.#below(4) === 0) {
      await journal.delete(key);
      this.#model.journals.delete(key);
    }
    await this.#compare(this.#one(this.#instances), key);
  }

  /** Compares everything at the end, and deletes it. */
  async end(): Promise<void> {
    for (const [key, { entries, runs }] of this.#model.journals) {
      for (const journal of this.#instances) {
        await this.#compare(journal, key);
        this.#expect("entries()", await journal.entries(key, 1, entries.length), entries);
        for (const run of runs.keys()) await this.#compareLines(journal, key, run, 0);
      }
    }
    for (const key of this.#model.journals.keys()) {
      const journal = this.#one(this.#instances);
      await journal.delete(key);
      const made = this.#made.get(key);
      if (made?.from) this.#expect("append() after delete()", await journal.append(key, made), undefined);
    }
  }

  async #append(journal: Journal, key: string): Promise<void> {
    const append = this.#below(6) === 0 ? this.#made.get(key) ?? this.#next(key) : this.#next(key);
    const expected = this.#model.append(key, append);
    const wasLost = this.#below(5) === 0; // its acknowledgement
    if (wasLost) await journal.append(key, append);
    const seen = await (wasLost ? this.#one(this.#instances) : journal).append(key, append);
    this.#expect("append()", seen, expected);
    if (expected?.stored) this.#made.set(key, append);
  }

  /** Returns an append to a journal: most are the next one, and some are of another process, or of one that has not read all mail. */
  #next(key: string): Append {
    const found = this.#model.journals.get(key);
    const from = this.#below(8) === 0 ? { holder: "other", n: 1 + this.#below(3) } : found?.mark;
    const isClaim = !from || this.#below(6) === 0;
    const to = isClaim ? { holder: `holder ${this.#steps}`, n: 1 } : { holder: from.holder, n: from.n + 1 };
    const hasChange = !found || this.#below(3) > 0;
    const { run = 0, events = 0 } = found ?? {};
    const change = hasChange ? this.#change(found) : undefined;
    const first = (change?.run ?? run) === run ? events + 1 : 1;
    const lines = Array.from(
      { length: this.#below(4) },
      (_, index) => `{"type":"text.delta","text":"${this.#steps}.${index} ${this.#text()}"}`,
    );
    const due = [undefined, undefined, null, -1_000, 2 ** 40][this.#below(5)];
    return {
      from,
      to,
      created: { session: `session ${key}`, owner: `owner ${this.#seed}` },
      ...(change && { change }),
      ...(this.#below(3) > 0 && (change?.run ?? run) > 0 && { events: { first, lines } }),
      ...(due !== undefined && { due }),
    };
  }

  #change(found: Modelled | undefined): JournalChange {
    const last = (found?.last ?? 0) - (this.#below(8) === 0 ? 1 : 0);
    const entries = Array.from(
      { length: this.#below(4) },
      () => ({ type: "message", message: user(this.#text()) } as const),
    );
    const state = (["running", "running", "running", "paused", "over"] as const)[this.#below(5)] ?? "over";
    const run = (found?.run ?? 0) + (this.#below(4) === 0 || !found ? 1 : 0);
    const base = this.#below(6) === 0 ? Math.max(last, 1) : found?.base ?? 1;
    return {
      run,
      state,
      base,
      waiting: this.#below(3),
      head: `{"step":${this.#steps}}`,
      last: Math.max(last, 0),
      entries,
    };
  }

  async #post(journal: Journal, key: string): Promise<void> {
    const { run = 1 } = this.#model.journals.get(key) ?? {};
    const entry = {
      type: "mail",
      id: `mail ${this.#steps}`,
      mail: { type: "message", message: user(this.#text()) },
    } as const;
    const most = [undefined, 1, 3][this.#below(3)];
    const post = { run: this.#below(8) === 0 ? run - 1 : run, entry, ...(most !== undefined && { most }) };
    this.#expect("post()", await journal.post(key, post), this.#model.post(key, post));
  }

  async #read(journal: Journal, key: string): Promise<void> {
    const found = this.#model.journals.get(key);
    const { last = 0, run = 0, entries = [] } = found ?? {};
    const first = 1 + this.#below(last + 1);
    const end = first + this.#below(4);
    this.#expect(
      `entries() from ${first} to ${end}`,
      await journal.entries(key, first, end),
      entries.slice(first - 1, end),
    );
    await this.#compareLines(journal, key, 1 + this.#below(run + 1), this.#below(12));
  }

  async #compareLines(journal: Journal, key: string, run: number, after: number): Promise<void> {
    const found = this.#model.journals.get(key);
    const { before = 0, lines = [] } = found?.runs.get(run) ?? {};
    const page = await journal.read(key, run, after);
    if (!found || (run !== found.run && lines.length === 0) || run === 0) {
      return this.#expect("read()", page, undefined);
    }
    const { session, owner, state } = found;
    const first = Math.max(before, after) + 1;
    const last = before + lines.length;
    const over = run < found.run || state !== "running";
    this.#expect(`read() of run ${run} after ${after}`, page, {
      first,
      lines: lines.slice(first - before - 1),
      last,
      over,
      session,
      owner,
    });
  }

  async #trim(journal: Journal, key: string): Promise<void> {
    const found = this.#model.journals.get(key);
    const { run = 1, state = "over" } = found ?? {};
    await journal.pack?.(key, state === "running" ? run - 1 : run);
    if (this.#below(2) === 0) return;
    await journal.trim(key, run);
    this.#model.trim(key, run);
  }

  async #compare(journal: Journal, key: string): Promise<void> {
    const found = this.#model.journals.get(key);
    const opened = await journal.open(key);
    const seen = opened && { ...opened, due: sign(opened.due) };
    const { runs: _, ended: __, ...expected } = found ?? {};
    const entries = found?.entries.slice(found.base - 1);
    this.#expect("open()", seen, found && { ...expected, due: sign(found.due), entries });
    const { owner } = found ?? {};
    if (owner) {
      this.#expect(
        "list()",
        await journal.list({ owner }),
        [...this.#model.journals.values()].map(({ session }) => session).sort(),
      );
    }
    const due = new Set(await journal.pending(100));
    for (const [key, { due: at }] of this.#model.journals) this.#expect("pending()", due.has(key), sign(at) === "due");
  }

  #text(): string {
    return this.#below(8) === 0
      ? JSON.stringify(oddText).slice(1, -1)
      : this.#below(30) === 0
      ? "漢".repeat(40_000)
      : "text";
  }

  #one<T>(choices: readonly T[]): T {
    return choices[this.#below(choices.length)] as T; // there is at least one
  }
}

function sign(due: number | null): string {
  return due === null ? "never" : due > 0 ? "later" : "due";
}
