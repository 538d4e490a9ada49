/**
 * Journals in a directory of files, written after `src/session/JOURNAL.md`: the head is the commit, and a folder is the lock.
 *
 * @module
 */
import {
  type Append,
  type Appended,
  headAfter,
  type Journal,
  type JournalHead,
  journalWatchers,
  type NumberedJournalEntry,
  outcomeOf,
  type Posted,
  type TimelessHead,
} from "../../src/core/journal.ts";

/** A head as it is stored: with times instead of durations. */
interface StoredHead extends TimelessHead {
  readonly dueAt: number | null;
  /** Milliseconds after its last change that it expires; null for never. */
  readonly keep: number | null;
  readonly changedAt: number;
}

/** Creates journals in a directory that exists. */
export function fileJournal(directory: string, { expireIn = Infinity }: { readonly expireIn?: number } = {}): Journal {
  const { watch, notify } = journalWatchers();
  const fileOf = (key: string, ...names: readonly (string | number)[]) => [directory, key, ...names].join("/");

  async function headOf(key: string): Promise<StoredHead | undefined> {
    const text = await Deno.readTextFile(fileOf(key, "head.json")).catch(() => undefined);
    const head: StoredHead | undefined = text && JSON.parse(text);
    const expires = head?.keep == null ? Infinity : Math.max(head.changedAt, head.dueAt ?? 0) + head.keep;
    return Date.now() < expires ? head : undefined;
  }

  /** Works alone on a journal, among the processes that share the directory. */
  async function alone<T>(key: string, work: () => Promise<T>): Promise<T> {
    for (let locked = false; !locked;) {
      locked = await Deno.mkdir(`${directory}/${key}.lock`).then(() => true, () => false);
    }
    try {
      return await work();
    } finally {
      await Deno.remove(`${directory}/${key}.lock`);
    }
  }

  /** Writes the files of an append and then the head, which is the commit. */
  async function write(key: string, head: StoredHead, files: ReadonlyMap<string, readonly string[]>): Promise<void> {
    for (const [name, lines] of files) {
      await Deno.mkdir(fileOf(key, name.slice(0, name.lastIndexOf("/"))), { recursive: true });
      await Deno.writeTextFile(fileOf(key, name), lines.join("\n"));
    }
    await Deno.mkdir(fileOf(key), { recursive: true });
    await Deno.writeTextFile(fileOf(key, "next.json"), JSON.stringify({ ...head, changedAt: Date.now() }));
    await Deno.rename(fileOf(key, "next.json"), fileOf(key, "head.json"));
    notify(key);
  }

  /** Deletes what a process has left that died before its commit. */
  async function clean(key: string, { last, run, events }: StoredHead): Promise<void> {
    for (const file of [fileOf(key, "entries", last + 1), fileOf(key, "events", run, events + 1)]) {
      await Deno.remove(file).catch(() => {}); // there is none
    }
  }

  async function append(key: string, addition: Append): Promise<Appended | undefined> {
    const { change, events, due, created = {} } = addition;
    const found = await headOf(key);
    const head = headAfter(addition, found);
    if (!head) return outcomeOf(addition, found);
    if (found) await clean(key, found);
    else await Deno.remove(fileOf(key), { recursive: true }).catch(() => {}); // what has expired
    const files = new Map<string, readonly string[]>();
    if (change && change.entries.length > 0) {
      files.set(`entries/${change.last + 1}`, change.entries.map((entry) => JSON.stringify(entry)));
    }
    if (events && events.lines.length > 0) files.set(`events/${head.run}/${events.first}`, events.lines);
    const dueAt = due === undefined ? found?.dueAt ?? null : due === null ? null : Date.now() + due;
    const keep = found ? found.keep : created.expireIn ?? (expireIn < Infinity ? expireIn : null);
    await write(key, { ...head, dueAt, keep, changedAt: 0 }, files);
    return { stored: true, last: head.last };
  }

  /** Reads the lines of a folder from number `first` on, each with its number. */
  async function linesIn(first: number, ...folder: readonly [string, ...(string | number)[]]) {
    const files = await Array.fromAsync(Deno.readDir(fileOf(...folder)), ({ name }) => Number(name)).catch(() => []);
    const sorted = files.toSorted((a, b) => a - b);
    const lines: (readonly [number, string])[] = [];
    for (const begin of sorted.slice(Math.max(sorted.findLastIndex((number) => number <= first), 0))) {
      const text = await Deno.readTextFile(fileOf(...folder, begin));
      lines.push(...text.split("\n").map((line, index) => [begin + index, line] as const));
    }
    return lines.filter(([number]) => number >= first);
  }

  async function entries(key: string, first: number, last: number): Promise<readonly NumberedJournalEntry[]> {
    const lines = (await linesIn(first, key, "entries")).filter(([number]) => number <= last);
    return lines.map(([number, line]) => [number, JSON.parse(line)]);
  }

  /** Deletes a journal that has expired, or the events of its runs that have been over for `keep` milliseconds. Returns whether there was something to delete. */
  async function sweep(key: string, keep: number): Promise<boolean> {
    const head = await headOf(key);
    if (!head) {
      await Deno.remove(fileOf(key), { recursive: true });
      return true;
    }
    if (head.state !== "over" || head.changedAt > Date.now() - keep) return false;
    return await Deno.remove(fileOf(key, "events"), { recursive: true }).then(() => true, () => false); // there may be none
  }

  async function keys(): Promise<readonly string[]> {
    const names = await Array.fromAsync(Deno.readDir(directory), ({ name }) => name);
    return names.filter((name) => !name.endsWith(".lock"));
  }

  async function all(): Promise<readonly (readonly [key: string, head: StoredHead])[]> {
    const heads = await Promise.all((await keys()).map(async (key) => [key, await headOf(key)] as const));
    return heads.flatMap(([key, head]) => head ? [[key, head] as const] : []);
  }

  return {
    watch,
    head: async (key) => returned(await headOf(key)),
    open: (key) =>
      alone(key, async () => {
        const head = returned(await headOf(key));
        return head && { ...head, entries: await entries(key, head.base, head.last) };
      }),
    entries: (key, first, last) =>
      alone(key, async () => await entries(key, Math.max(first, 1), Math.min(last, (await headOf(key))?.last ?? 0))),
    append: (key, addition) => alone(key, () => append(key, addition)),
    post: (key, { run, entry, most }) =>
      alone(key, async (): Promise<Posted> => {
        const head = await headOf(key);
        if (!head || head.run !== run || head.state !== "running") return { status: "over" };
        if (most !== undefined && head.waiting >= most) return { status: "full" };
        await clean(key, head);
        const last = head.last + 1;
        const waiting = head.waiting + (most === undefined ? 0 : 1);
        await write(key, { ...head, last, waiting }, new Map([[`entries/${last}`, [JSON.stringify(entry)]]]));
        return { status: "posted", last };
      }),
    read: (key, run, after) =>
      alone(key, async () => {
        const head = await headOf(key);
        if (!head || run < 1 || run > head.run) return undefined;
        const whole = await linesIn(1, key, "events", run);
        const known = run < head.run ? whole : whole.filter(([number]) => number <= head.events);
        const last = run < head.run ? known.at(-1)?.[0] ?? 0 : head.events;
        if (last === 0 && run < head.run) return undefined;
        const lines = known.filter(([number]) => number > after);
        const [first = Math.max(known.length === 0 ? last : after, after) + 1] = lines[0] ?? [];
        const over = run < head.run || head.state !== "running";
        return { first, lines: lines.map(([, line]) => line), last, over, session: head.session, owner: head.owner };
      }),
    async pending(limit, within = 0) {
      const due = (await all()).filter(([, { dueAt }]) => dueAt !== null && dueAt <= Date.now() + within);
      return due.toSorted(([, a], [, b]) => (a.dueAt ?? 0) - (b.dueAt ?? 0)).slice(0, limit).map(([key]) => key);
    },
    async list({ owner, after = "", limit = 100 } = {}) {
      const own = (await all()).flatMap(([, { session, owner: by }]) =>
        session !== undefined && by === owner ? [session] : []
      );
      return own.filter((session) => session > after).sort().slice(0, limit);
    },
    trim: (key, run) =>
      alone(key, async () => {
        const runs = await Array.fromAsync(Deno.readDir(fileOf(key, "events")), ({ name }) => Number(name)).catch(
          () => [],
        );
        for (const each of runs) if (each < run) await Deno.remove(fileOf(key, "events", each), { recursive: true });
      }),
    async sweep(limit, keep) {
      let count = 0;
      for (const key of await keys()) {
        if (count < limit && await alone(key, () => sweep(key, keep))) count++;
      }
      return count;
    },
    async delete(...deleted) {
      for (const key of deleted) {
        await alone(key, () => Deno.remove(fileOf(key), { recursive: true }).catch(() => {})); // there may be none
        notify(key);
      }
    },
  };
}

function returned(stored: StoredHead | undefined): JournalHead | undefined {
  if (!stored) return undefined;
  const { dueAt, keep: _, changedAt: __, ...head } = stored;
  return { ...head, session: head.session, owner: head.owner, due: dueAt === null ? null : dueAt - Date.now() };
}
