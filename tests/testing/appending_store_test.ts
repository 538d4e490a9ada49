/**
 * The laws of stores find faults of adapters: `storeLaws()`.
 */
import type { Addition, NumberedEntry, OpenedSession, StoreAdapter, StoredHead } from "@jizai/jizai/session/durable";
import { storeLaws } from "@jizai/jizai/testing";
import { assertEquals, assertRejects } from "@std/assert";

/** A stored session. */
interface Row extends StoredHead {
  readonly entries: NumberedEntry[];
}

/** The faults, and the law that finds each. */
const faults = {
  "opens a session after its base": "appends entries, and replaces the head",
  "opens a session from its first entry": "appends entries, and replaces the head",
  "forgets a new base": "appends entries, and replaces the head",
  "returns one entry too few": "appends entries, and replaces the head",
  "keeps the entries of the caller": "copies what it saves and what it returns",
  "returns the list that it keeps": "never returns a partial write",
  "replaces the head only with an entry": "appends entries, and replaces the head",
  "removes the lease with a save that does not move it": "stores the lease only with a save that moves it",
  "returns what it knows of a session that another instance has saved": "appends entries, and replaces the head",
  "compares only the number of a mark": "refuses an append whose mark is not stored, and changes nothing",
  "compares only the holder of a mark": "refuses an append whose mark is not stored, and changes nothing",
  "stores the entries of an append that it refuses": "refuses an append whose mark is not stored, and changes nothing",
  "refuses an append that is repeated": "accepts an append that is repeated, and stores it once",
  "stores an append that is repeated twice": "accepts an append that is repeated, and stores it once",
  "accepts each new session": "refuses an append whose mark is not stored, and changes nothing",
  "keeps the entries of a deleted session":
    "does not take a session that was deleted and saved anew for the one before",
  "reads the mark before it waits": "accepts one of several appends at once",
} as const;

type Fault = keyof typeof faults;

function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null) { for (const each of Object.values(value)) frozen(each); }
  return Object.freeze(value);
}

/** Creates an adapter over `rows`, with a fault. */
function adapter(rows: Map<string, Row>, left: Map<string, NumberedEntry[]>, fault?: Fault): StoreAdapter {
  const known = new Map<string, Row>();
  const has = (name: Fault) => fault === name;
  const rowOf = (id: string) => {
    const row = has("returns what it knows of a session that another instance has saved")
      ? known.get(id) ?? rows.get(id)
      : rows.get(id);
    if (row) known.set(id, row);
    return row;
  };
  const isAt = ({ mark }: Row, other: StoredHead["mark"] | undefined) =>
    (has("compares only the number of a mark") || mark.holder === other?.holder) &&
    (has("compares only the holder of a mark") || mark.n === other?.n);
  const shown = (entries: readonly NumberedEntry[]) =>
    has("keeps the entries of the caller") ? entries : entries.map((entry) => frozen(structuredClone(entry)));

  function put(id: string, row: Row | undefined, addition: Addition): void {
    const {
      to,
      head,
      entries,
      first,
      base,
      until = has("removes the lease with a save that does not move it") ? null : row?.until ?? null,
    } = addition;
    const list = row?.entries ?? [...has("keeps the entries of a deleted session") ? left.get(id) ?? [] : []];
    for (const [index, entry] of entries.entries()) {
      list.push([first + index, has("keeps the entries of the caller") ? entry : structuredClone(entry)]);
    }
    rows.set(id, {
      mark: to,
      base: has("forgets a new base") ? row?.base ?? base : base,
      last: list.length,
      until,
      head: row && entries.length === 0 && has("replaces the head only with an entry") ? row.head : head,
      entries: list,
    });
  }

  return {
    head: (id) => Promise.resolve(rowOf(id)),
    open(id) {
      const row = rowOf(id);
      if (!row) return Promise.resolve(undefined);
      const from = has("opens a session after its base")
        ? row.base
        : has("opens a session from its first entry")
        ? 0
        : row.base - 1;
      const opened: OpenedSession = {
        ...row,
        entries: has("returns the list that it keeps") && from === 0 ? row.entries : shown(row.entries.slice(from)),
      };
      return Promise.resolve(opened);
    },
    entries(id, first, last) {
      return Promise.resolve(
        shown(rowOf(id)?.entries.slice(first - 1, has("returns one entry too few") ? last - 1 : last) ?? []),
      );
    },
    async append(id, addition) {
      const { from, to } = addition;
      let row = rows.get(id);
      if (has("reads the mark before it waits")) await new Promise((resolve) => setTimeout(resolve));
      else row = rows.get(id);
      if (row && row.mark.holder === to.holder && row.mark.n === to.n) {
        if (has("refuses an append that is repeated")) return false;
        if (has("stores an append that is repeated twice")) put(id, row, addition);
        return true;
      }
      const isRefused = row ? !isAt(row, from) && !(has("accepts each new session") && !from) : from !== undefined;
      if (isRefused) {
        if (row && has("stores the entries of an append that it refuses")) {
          put(id, row, { ...addition, to: row.mark, head: row.head });
        }
        return false;
      }
      put(id, row, addition);
      return true;
    },
    delete(id) {
      const row = rows.get(id);
      if (row) left.set(id, row.entries);
      rows.delete(id);
      known.delete(id);
      return Promise.resolve();
    },
    list: ({ after = "", limit = 100 } = {}) =>
      Promise.resolve([...rows.keys()].filter((id) => id > after).sort().slice(0, limit)),
    pending(before, limit) {
      const due = [...rows].flatMap(([id, { until }]) =>
        until !== null && until <= before ? [[until, id] as const] : []
      );
      return Promise.resolve(due.sort(([a], [b]) => a - b).slice(0, limit).map(([, id]) => id));
    },
    touch({ id, version, lease }, until) {
      const row = rows.get(id);
      const isCurrent = row !== undefined && row.mark.n === version && row.until !== null && row.until === lease?.until;
      if (isCurrent) rows.set(id, { ...row, until });
      return Promise.resolve(isCurrent);
    },
  };
}

/** Creates two instances of the adapter on one database. */
function instances(fault?: Fault): readonly StoreAdapter[] {
  const [rows, left] = [new Map<string, Row>(), new Map<string, NumberedEntry[]>()];
  return [1, 2].map(() => adapter(rows, left, fault));
}

Deno.test("storeLaws() accepts an adapter that appends", async () => {
  await storeLaws(() => instances());
});

for (const [fault, law] of Object.entries(faults)) {
  Deno.test(`storeLaws() finds an adapter that ${fault}`, async () => {
    const { message } = await assertRejects(() => storeLaws(() => instances(fault as Fault)), Error); // the keys of the record
    const broken = [...message.matchAll(/^It breaks the law that it (.*):$/gm)].map(([, name]) => name);
    assertEquals(broken.includes(law), true, `It breaks: ${broken.join("; ")}`);
  });
}
