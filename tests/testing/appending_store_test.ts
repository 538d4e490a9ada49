/**
 * The laws of stores find faults of stores that append what is new: `storeLaws()`.
 */
import type { Message, Session } from "@jizai/jizai";
import type { StoreAdapter } from "@jizai/jizai/session/durable";
import { storeLaws } from "@jizai/jizai/testing";
import { assertEquals, assertRejects } from "@std/assert";

/** A stored session: its head as JSON, and numbered entries. An entry is a message as JSON, or a cut that leaves the entries up to a number. */
interface Row {
  readonly version: number;
  /** Another one after each save: a session that was deleted and saved anew has an earlier version again. */
  readonly mark: string;
  readonly head: string;
  readonly entries: readonly (string | { readonly to: number })[];
}

/** A session as an instance has loaded or saved it. */
interface Known {
  readonly mark: string;
  readonly messages: Message[];
  /** The number of the entry of each message. */
  readonly numbers: readonly number[];
}

/** A fault of a store. */
type Fault =
  | "cuts one entry too far"
  | "cuts by the index of the message"
  | "keeps the list of the caller"
  | "returns the list that it keeps"
  | "keeps the messages of the caller"
  | "returns messages that can be edited"
  | "trusts what it knows of a session that another instance has saved"
  | "compares transcripts by their length"
  | "compares only the last message"
  | "appends only what is new when the middle has changed"
  | "keeps the entries of a deleted session"
  | "remembers a save that was refused"
  | "saves the head only with a message";

/** Returns instances of a store with a fault, over one database. */
function instances(fault?: Fault): readonly StoreAdapter[] {
  const rows = new Map<string, Row>();
  return [1, 2].map(() => appendingStore(rows, fault));
}

function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null) { for (const each of Object.values(value)) frozen(each); }
  return Object.freeze(value);
}

/** Returns the messages of entries, and their numbers. */
function fold(entries: Row["entries"]): Pick<Known, "messages" | "numbers"> {
  const kept: { readonly number: number; readonly text: string }[] = [];
  for (const [index, entry] of entries.entries()) {
    if (typeof entry === "string") kept.push({ number: index + 1, text: entry });
    else while ((kept.at(-1)?.number ?? 0) > entry.to) kept.pop();
  }
  return { messages: kept.map(({ text }) => JSON.parse(text)), numbers: kept.map(({ number }) => number) };
}

/** Creates an instance that compares a transcript with the one that it knows, and appends a cut and what is new. */
function appendingStore(rows: Map<string, Row>, fault?: Fault): StoreAdapter {
  const known = new Map<string, Known>();

  function read(id: string): Known | undefined {
    const row = rows.get(id);
    const old = known.get(id);
    if (old && (old.mark === row?.mark || fault?.startsWith("trusts"))) return old;
    if (!row) return undefined;
    const { messages, numbers } = fold(row.entries);
    const found = {
      mark: row.mark,
      messages: fault === "returns messages that can be edited" ? messages : messages.map(frozen),
      numbers,
    };
    known.set(id, found);
    return found;
  }

  function isSame(old: Message | undefined, message: Message | undefined): boolean {
    return old === message || JSON.stringify(old) === JSON.stringify(message);
  }

  /** Returns how many messages stay. */
  function kept(old: readonly Message[], messages: readonly Message[]): number {
    if (fault === "compares transcripts by their length") return Math.min(old.length, messages.length);
    if (fault === "compares only the last message" && isSame(old.at(-1), messages.at(old.length - 1))) {
      return old.length;
    }
    const changed = messages.findIndex((message, index) => index >= old.length || !isSame(old[index], message));
    return changed < 0 ? Math.min(old.length, messages.length) : changed;
  }

  return {
    load(id) {
      const row = rows.get(id);
      const found = row && read(id);
      if (!row || !found) return Promise.resolve(undefined);
      const messages = fault === "returns the list that it keeps" ? found.messages : [...found.messages];
      return Promise.resolve({ ...JSON.parse(row.head), version: row.version, messages });
    },
    save({ version, messages, ...head }) {
      const { id } = head;
      const row = rows.get(id);
      const old = read(id);
      const next = {
        mark: crypto.randomUUID(),
        messages: fault === "keeps the list of the caller"
          ? messages as Message[] // the fault
          : fault === "keeps the messages of the caller"
          ? [...messages]
          : messages.map((message) => frozen(structuredClone(message))),
      };
      if ((row?.version ?? 0) !== version) {
        if (fault === "remembers a save that was refused" && row) {
          known.set(id, { ...next, mark: row.mark, numbers: [] });
        }
        return Promise.resolve(undefined);
      }
      const entries = [...row?.entries ?? []];
      const same = kept(old?.messages ?? [], messages);
      const to = fault === "cuts by the index of the message" ? same : old?.numbers[same - 1] ?? 0;
      const isShorter = same < (old?.messages.length ?? 0) &&
        fault !== "appends only what is new when the middle has changed";
      if (isShorter) entries.push({ to: fault === "cuts one entry too far" ? Math.max(to - 1, 0) : to });
      entries.push(...messages.slice(same).map((message) => JSON.stringify(message)));
      const isHeadKept = fault === "saves the head only with a message" && row !== undefined &&
        messages.length === old?.messages.length && same === messages.length;
      rows.set(id, {
        version: version + 1,
        mark: next.mark,
        head: isHeadKept ? row.head : JSON.stringify(head),
        entries,
      });
      known.set(id, { ...next, numbers: fold(entries).numbers });
      return Promise.resolve(version + 1);
    },
    delete(id) {
      const row = rows.get(id);
      rows.delete(id);
      known.delete(id);
      if (row && fault === "keeps the entries of a deleted session") rows.set(id, { ...row, version: 0 });
      return Promise.resolve();
    },
    list: ({ after = "", limit = 100 } = {}) => {
      const ids = [...rows].filter(([id, { version }]) => version > 0 && id > after).map(([id]) => id);
      return Promise.resolve(ids.sort().slice(0, limit));
    },
    pending(before, limit) {
      const ends = [...rows].map(([id, { head }]) =>
        [id, (JSON.parse(head) as Session).lease?.until ?? Infinity] as const
      );
      return Promise.resolve(
        ends.filter(([, end]) => end <= before).sort(([, a], [, b]) => a - b).slice(0, limit).map(([id]) => id),
      );
    },
    touch({ id, version, lease }, until) {
      const row = rows.get(id);
      const head: Session | undefined = row && JSON.parse(row.head);
      const isCurrent = row?.version === version && head?.lease !== undefined && head.lease.until === lease?.until;
      if (isCurrent) rows.set(id, { ...row, head: JSON.stringify({ ...head, lease: { ...head.lease, until } }) });
      return Promise.resolve(isCurrent);
    },
  };
}

const faults: Readonly<Record<Fault, true>> = {
  "cuts one entry too far": true,
  "cuts by the index of the message": true,
  "keeps the list of the caller": true,
  "returns the list that it keeps": true,
  "keeps the messages of the caller": true,
  "returns messages that can be edited": true,
  "trusts what it knows of a session that another instance has saved": true,
  "compares transcripts by their length": true,
  "compares only the last message": true,
  "appends only what is new when the middle has changed": true,
  "keeps the entries of a deleted session": true,
  "remembers a save that was refused": true,
  "saves the head only with a message": true,
};

Deno.test("storeLaws() accepts a store that appends what is new", async () => {
  await storeLaws(() => instances());
});

for (const fault of Object.keys(faults) as readonly Fault[]) { // the keys of the record
  Deno.test(`storeLaws() finds a store that appends what is new and ${fault}`, async () => {
    const { message } = await assertRejects(() => storeLaws(() => instances(fault)), Error);
    assertEquals(/^It breaks the law that it (returns|shares|copies|accepts|counts|refuses)/m.test(message), true);
  });
}
