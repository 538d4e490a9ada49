/**
 * Versions of a session: a session as a store has it, and the save that makes the next version of it.
 *
 * @module
 */
import {
  changeTo,
  emptyTranscript,
  type Entry,
  historyOf,
  type NumberedEntry,
  type NumberedMessages,
  type StoredTranscript,
  transcriptOf,
} from "./entries.ts";
import type { Session, SessionHead } from "./session.ts";
import {
  type Addition,
  type HistoryOptions,
  type HistoryPage,
  type Mark,
  type OpenedSession,
  type SessionReader,
  type Sessions,
  type SessionStore,
  type StoredHead,
  UnreadableError,
} from "./store.ts";
import type { Message } from "../protocol/message.ts";

// Large values of a session's head. They are entries, to which the head refers by number, so that a save writes only those that have changed.

/** The least number of characters of a large value, as JSON. */
const large = 1_000;

/** The only member of a reference, whose value is a number. Another object with this member is kept as the value of the member in an object of its own. */
const member = "$entry";

/** A head, or a large value, in which references stand for large values. */
interface Outline {
  /** The head as JSON. */
  readonly text: string;
  /** The values that are not stored yet, as JSON, in the order of their numbers. */
  readonly added: readonly string[];
  /** The numbers of the values that the head refers to, by their JSON. */
  readonly numbers: ReadonlyMap<string, number>;
}

/** Returns `head` with references to its large values. `known` are the values that are stored. Those that are added are numbered from `first`. */
export function outline(head: object, known: ReadonlyMap<string, number>, first: number): Outline {
  const added: string[] = [];
  const numbers = new Map<string, number>();

  function refer(text: string): unknown {
    const number = numbers.get(text) ?? known.get(text) ?? first + added.length;
    if (number === first + added.length) added.push(text);
    numbers.set(text, number);
    return { [member]: number };
  }

  /** Returns a value with its large parts replaced, or a reference to it if it is large without them. */
  function shorten(value: unknown): unknown {
    const short = mapParts(value, shorten);
    const text = JSON.stringify(short);
    return text.length < large ? short : refer(text);
  }

  const text = JSON.stringify(head);
  if (text.length < large && !text.includes(member)) return { text, added, numbers };
  return { text: JSON.stringify(mapParts(JSON.parse(text), shorten)), added, numbers };
}

/** Returns a value with `change` applied to its members or elements. */
function mapParts(value: unknown, change: (part: unknown) => unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(change);
  const parts = Object.fromEntries(Object.entries(value).map(([name, part]) => [name, change(part)]));
  return member in value ? { [member]: parts } : parts;
}

/** Returns the numbers of the values that a JSON text refers to. */
export function referencesIn(text: string): readonly number[] {
  const numbers: number[] = [];
  if (text.includes(member)) insert(JSON.parse(text), (number) => void numbers.push(number));
  return numbers;
}

/** Returns the value of a JSON text, in which `values`, by their numbers, take the places of references. They may contain references too. */
export function restore(text: string, values: ReadonlyMap<number, unknown>): unknown {
  const value: unknown = JSON.parse(text);
  const valueOf = (number: number): unknown => insert(values.get(number), valueOf);
  return text.includes(member) ? insert(value, valueOf) : value;
}

function insert(value: unknown, valueOf: (number: number) => unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((part) => insert(part, valueOf));
  const { [member]: reference, ...others }: Readonly<Record<string, unknown>> = { ...value };
  if (typeof reference === "number") return valueOf(reference);
  const parts = reference === undefined ? others : reference; // an object that has the member itself
  return Object.fromEntries(Object.entries(parts ?? {}).map(([name, part]) => [name, insert(part, valueOf)]));
}

// The version of a session, and the save that makes the next one.

/** The newest format of heads and entries that this version of the package reads. */
const newestFormat = 2;

/** The positions that this version of the package continues. */
const positions: readonly unknown[] = [
  "incoming",
  "prompt",
  "model",
  "tools",
  "turnEnd",
  "stop",
  "promptEnd",
  "compact",
];

/** The names of two positions in format 1, and those that they have now. */
const renamed: ReadonlyMap<unknown, string> = /* @__PURE__ */ new Map([["arrived", "incoming"], ["input", "prompt"]]);

/** Returns a head whose position has the name of today. */
export function inCurrentForm<H>(head: H): H {
  const { run } = Object(head);
  const at = renamed.get(run?.position?.at);
  return at === undefined ? head : { ...head, run: { ...run, position: { ...run.position, at } } };
}

/**
 * Returns the format of a head with this run. It is 2 if the run, or that of a paused child, is at a position that has another name in format 1. Earlier versions
 * of the package read format 1 only, so they leave such a session alone. All other runs are written in format 1, so that they can continue them.
 */
export function formatFor(run: unknown): 1 | 2 {
  const { at, calls } = Object(Object(run).position);
  if (at === "incoming" || at === "prompt") return 2;
  const isChildNew = (call: unknown) => formatFor(Object(Object(call).saved).run) === 2;
  return Array.isArray(calls) && calls.some(isChildNew) ? 2 : 1;
}

/** A head as it is stored. A head that does not begin with its format is a whole session, as version 0.1.0 of the package wrote it. */
interface FormattedHead extends Omit<SessionHead, "version"> {
  readonly format?: number;
  readonly messages?: readonly Message[];
  /** The mark of the last save of a run's writer: other processes that change the head keep it. */
  readonly writer?: Mark;
}

/** Returns true if two marks are of the same save. */
export function isSameMark(a: Mark | undefined, b: Mark | undefined): boolean {
  return a !== undefined && a.holder === b?.holder && a.n === b.n;
}

/** The session to save next. Without messages, the transcript stays. */
type NextSession = Omit<SessionHead, "version"> & { readonly version?: number; readonly messages?: readonly Message[] };

/** The fields of a head that a version keeps for the next one. */
type KeptFields = Pick<FormattedHead, "compactions" | "writer" | "messages" | "archive">;

/** The options of a save. */
interface NextOptions {
  /** The holder of the next mark. */
  readonly holder: string;
  /** Whether the writer of the session's run saves it. Default: another process changes its head. */
  readonly isWriter?: boolean;
  /** Whether the lease is stored as it is in the session. Default: true. If not, the stored lease stays. */
  readonly movesLease?: boolean;
}

/** A stored version of a session, or that of no session. A writer keeps it from one save to the next, so that it appends only what is new. */
export class SessionVersion {
  readonly mark: Mark | undefined;
  readonly #transcript: StoredTranscript;
  /** The numbers of the large values of the head, by their JSON. */
  readonly #values: ReadonlyMap<string, number>;
  /** Its messages are those of a session that is stored as a whole. */
  readonly #kept: KeptFields;

  private constructor(
    mark: Mark | undefined,
    transcript: StoredTranscript,
    values: ReadonlyMap<string, number>,
    kept: KeptFields,
  ) {
    this.mark = mark;
    this.#transcript = transcript;
    this.#values = values;
    this.#kept = kept;
  }

  /** The version of no session. */
  static readonly none: SessionVersion = new SessionVersion(undefined, emptyTranscript, new Map(), {});

  /** Returns the version of a session that was opened, or of a head and its large values, which changes no transcript. */
  static of(
    { mark, base, last }: StoredHead,
    transcript: NumberedMessages,
    values: ReadonlyMap<number, unknown>,
    head: FormattedHead,
  ): SessionVersion {
    const numbers = new Map(Array.from(values, ([number, value]) => [JSON.stringify(value), number]));
    return new SessionVersion(mark, { ...transcript, base, last }, numbers, head);
  }

  /** The mark of the last save of the run's writer. */
  get writer(): Mark | undefined {
    return this.#kept.writer;
  }

  /** The number of the last entry; 0: there is none. */
  get last(): number {
    return this.#transcript.last;
  }

  /** The number of the save; 0 for no session. */
  get n(): number {
    return this.mark?.n ?? 0;
  }

  /** Returns this version with the mark of a later one, which another process has made without a change of the transcript. */
  followedBy({ mark, last }: Pick<SessionVersion, "mark" | "last">): SessionVersion {
    return new SessionVersion(mark, { ...this.#transcript, last }, this.#values, this.#kept);
  }

  /** Returns the save that makes the next version of a session, and that version. */
  next(
    { messages = this.#kept.messages ?? this.#transcript.messages, version: _, ...head }: NextSession,
    { holder, isWriter = false, movesLease = true }: NextOptions,
  ): { readonly addition: Addition; readonly version: SessionVersion } {
    const { compactions = 0, run, owner, lease, archive = this.#kept.archive } = head;
    const isCompaction = compactions > (this.#kept.compactions ?? 0);
    const { entries: changes, stored } = changeTo(messages, this.#transcript, isCompaction);
    const known = stored.base === this.#transcript.base ? this.#values : new Map<string, number>(); // values from before a base are not read
    const first = this.#transcript.last + 1;
    const to = { holder, n: this.n + 1 };
    const writer = isWriter ? to : this.writer;
    const kept: KeptFields = { ...(writer && { writer }), ...(archive !== undefined && { archive }) };
    const { text, added, numbers } = outline(
      { format: formatFor(run), ...head, ...kept },
      known,
      first + changes.length,
    );
    const entries = [...changes, ...added.map((value): Entry => ({ type: "value", value: JSON.parse(value) }))];
    const addition: Addition = {
      from: this.mark,
      to,
      head: text,
      entries,
      first,
      base: stored.base,
      ...(movesLease && { until: lease ? Math.trunc(lease.until) : null }),
      owner,
      run: run && (run.exit ? "paused" : "running"),
    };
    const transcript = { ...stored, last: first + entries.length - 1 };
    return {
      addition,
      version: new SessionVersion(to, transcript, numbers, { compactions, ...kept }),
    };
  }
}

/** A session that was read, and its version. */
export interface Opened<S = Session> {
  readonly session: S | undefined;
  readonly version: SessionVersion;
}

/** The result of opening a session that is not stored. */
export const noSession: Opened<never> = { session: undefined, version: SessionVersion.none };

/** Opens a session. Its messages cannot be changed. Throws an `UnreadableError` if it is damaged or if a newer version of the package has written it. */
export async function openSession(store: SessionReader, id: string): Promise<Opened> {
  return readSession(await store.open(id), id);
}

/** Reads a session that a store has opened, as `openSession()` does. */
export function readSession(opened: OpenedSession | undefined, id: string): Opened {
  if (!opened) return noSession;
  const { base, last, entries } = opened;
  return readable(id, () => {
    formatOf(opened);
    if (entries.length < last - base + 1) {
      throw new TypeError(`it has ${entries.length} of its entries ${base} to ${last}`);
    }
    return read(opened, entries, id);
  });
}

/** Reads a session without its messages, as `openSession()` reads a whole one. */
export async function openHead(
  store: SessionReader,
  id: string,
): Promise<Opened<SessionHead>> {
  const stored = await store.head(id);
  if (!stored) return noSession;
  const entries = await readValues(store, id, readable(id, () => referencesOf(stored)));
  const { session: { messages: _, ...session }, version } = readable(id, () => read(stored, entries, id));
  return { session, version };
}

/** Reads the large values with these numbers, and those that they refer to, which may be older. */
async function readValues(
  store: SessionReader,
  id: string,
  numbers: readonly number[],
): Promise<readonly NumberedEntry[]> {
  const found = new Map<number, NumberedEntry>();
  for (let missing = numbers; missing.length > 0;) {
    const [first, last] = [Math.min(...missing), Math.max(...missing)];
    const read = await store.entries(id, first, last);
    for (const entry of read) found.set(entry[0], entry);
    const nested = missing.flatMap((number) => {
      const entry = found.get(number)?.[1];
      return entry?.type === "value" ? referencesIn(JSON.stringify(entry.value)) : [];
    });
    missing = nested.filter((number) => !found.has(number));
  }
  return [...found.values()];
}

/** Parses what a store has returned. A failure names the session. */
function readable<T>(id: string, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    throw new UnreadableError(`Cannot read session "${id}": ${cause instanceof Error ? cause.message : ""}`, { cause });
  }
}

/** Returns the format of a head, which begins with it; 0 for a whole session. Throws a `TypeError` for a newer one, which nothing else is read of. */
function formatOf({ head }: StoredHead): number {
  const written = Number(/^\{"format":(\d+)/.exec(head)?.[1] ?? 0);
  if (written <= newestFormat) return written;
  throw new TypeError(
    `a newer version of the package has written it, in format ${written}; expected ${newestFormat} or lower`,
  );
}

/** Returns the numbers of the large values that a head refers to. A whole session has none, although a text in it may look like a reference. */
function referencesOf(stored: StoredHead): readonly number[] {
  return formatOf(stored) > 0 ? referencesIn(stored.head) : [];
}

/** Throws a `TypeError` for a head with a field of another type, or with a position of a newer version. */
function checkHead(head: unknown): asserts head is FormattedHead {
  const { run, lease, mail = [], state = [], rules = [], messages = [], report } = Object(head);
  const lists = [mail, state, rules, messages];
  if (run !== undefined) {
    const { id, position, counters, usage, answers, state, before, events } = Object(run);
    if (!positions.includes(position?.at)) {
      throw new TypeError(`its run is at position "${position?.at}", which is unknown`);
    }
    lists.push(answers, state);
    if (position.at === "tools") lists.push(position.calls, position.message?.parts);
    const isWhole = typeof id === "string" && typeof counters === "object" && typeof usage === "object" &&
      Number.isInteger(before) && Number.isInteger(events);
    if (!isWhole) throw new TypeError("a field of its run has another type");
  }
  const isLease = lease === undefined || Number.isFinite(lease?.until);
  const isReport = report === undefined || (typeof report?.run === "string" && typeof report.session === "string");
  if (Array.isArray(head) || Object(head) !== head || !isLease || !isReport || !lists.every(Array.isArray)) {
    throw new TypeError("one of its fields has another type");
  }
}

function read(stored: StoredHead, entries: readonly NumberedEntry[], id: string) {
  const values = new Map<number, unknown>();
  for (const [number, entry] of entries) if (entry.type === "value") values.set(number, entry.value);
  const missing = referencesOf(stored).find((number) => !values.has(number));
  if (missing !== undefined) throw new TypeError(`its entry ${missing} is missing`);
  const head = inCurrentForm(formatOf(stored) > 0 ? restore(stored.head, values) : JSON.parse(stored.head));
  checkHead(head);
  const { format: _, writer: __, messages, lease, ...rest } = head;
  const transcript = transcriptOf(entries);
  const session: Session = {
    ...rest,
    id,
    version: stored.mark.n,
    messages: freeze(messages ?? transcript.messages),
    ...(lease && { lease: { ...lease, until: stored.until ?? lease.until } }), // it may have moved since
  };
  return { session, version: SessionVersion.of(stored, transcript, values, head) };
}

/** Replaces the head of a session, as a process that does not have it does. Resolves to false, and changes nothing, if another process was faster. */
export async function changeHead(
  store: SessionStore,
  id: string,
  version: SessionVersion,
  head: SessionHead,
): Promise<boolean> {
  const { addition } = version.next(head, { holder: crypto.randomUUID() });
  return await store.append(id, addition);
}

/** Returns the operations on whole sessions of a store. */
export function sessionsOf(store: SessionStore): Sessions {
  return {
    load: async (id) => (await openSession(store, id)).session,
    async save({ version: n, ...session }) {
      const { version } = await openSession(store, session.id);
      if (version.n !== n) return undefined;
      const { addition } = version.next(session, { holder: crypto.randomUUID(), isWriter: true });
      return await store.append(session.id, addition) ? n + 1 : undefined;
    },
    history: async (id, options) => await historyIn(store, id, options),
    async fork(id, to, { at } = {}) {
      const { session, version } = await openSession(store, id);
      if (!session || at !== undefined && !(at >= 0 && at <= version.last)) return false;
      const messages = at === undefined ? session.messages : transcriptOf(await store.entries(id, 1, at)).messages;
      const { owner, state, rules } = session;
      const copy = {
        id: to,
        messages,
        ...(owner !== undefined && { owner }),
        ...(state && { state }),
        ...(rules && { rules }),
      };
      return await store.append(to, SessionVersion.none.next(copy, { holder: crypto.randomUUID() }).addition);
    },
  };
}

/** Reads a page of a session's history. */
export async function historyIn(
  store: SessionReader,
  id: string,
  { before = Infinity, limit = 100 }: HistoryOptions = {},
): Promise<HistoryPage | undefined> {
  const { session, version: { last } } = await openSession(store, id);
  if (!session) return undefined;
  const all = last === 0
    ? session.messages.map((message, index) => [index + 1, message] as const) // stored as a whole
    : historyOf(await store.entries(id, 1, last));
  const earlier = all.filter(([number]) => number < before);
  const page = earlier.slice(-limit);
  const numbers = page.map(([number]) => number);
  return {
    messages: page.map(([, message]) => message),
    numbers,
    before: page.length < earlier.length ? numbers[0] : undefined,
  };
}

/** Freezes a value and everything in it, so that a change in place of what is stored once, which no save would store, throws. */
export function freeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) freeze(part);
  return Object.freeze(value);
}
