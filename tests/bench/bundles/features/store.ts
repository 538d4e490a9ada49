/** A custom store with the code for several processes: leases, checkpoints and messages. */
import { agent, serve } from "@jizai/jizai";
import { durable, type OpenedJournal } from "@jizai/jizai/session/durable";
import { options } from "../assistant.ts";

/** A journal with all its entries, and the time at which another process must look. */
interface Kept extends OpenedJournal {
  readonly dueAt: number | null;
}

const kept = new Map<string, Kept>();
const none = {
  run: 0,
  state: "over",
  base: 1,
  waiting: 0,
  head: "",
  last: 0,
  events: 0,
  due: null,
  dueAt: null,
} as const;

function open(key: string): OpenedJournal | undefined {
  const found = kept.get(key);
  if (!found) return undefined;
  const { dueAt, base, entries } = found;
  return { ...found, due: dueAt === null ? null : dueAt - Date.now(), entries: entries.slice(base - 1) };
}

export const store = durable({
  head: (key) => Promise.resolve(open(key)),
  open: (key) => Promise.resolve(open(key)),
  entries: (key, first, last) => Promise.resolve(kept.get(key)?.entries.slice(first - 1, last) ?? []),
  append(key, { to, created: { session, owner } = {}, change, due }) {
    const old: Kept = kept.get(key) ?? { ...none, session, owner, mark: to, entries: [] };
    const entries = [...old.entries];
    for (const entry of change?.entries ?? []) entries.push([entries.length + 1, entry]);
    const dueAt = due === undefined ? old.dueAt : due === null ? null : Date.now() + due;
    const last = entries.length;
    kept.set(key, { ...old, ...change, mark: to, entries, last, dueAt });
    return Promise.resolve({ stored: true, last });
  },
  post(key, { entry }) {
    const old = kept.get(key);
    if (!old) return Promise.resolve({ status: "over" });
    const last = old.last + 1;
    kept.set(key, { ...old, last, entries: [...old.entries, [last, entry]] });
    return Promise.resolve({ status: "posted", last });
  },
  read: () => Promise.resolve(undefined),
  watch: () => () => {},
  pending(limit, within = 0) {
    const due = [...kept].filter(([, { dueAt }]) => dueAt !== null && dueAt <= Date.now() + within);
    return Promise.resolve(due.map(([key]) => key).slice(0, limit));
  },
  list: () => Promise.resolve([...kept.values()].flatMap(({ session }) => session ?? [])),
  trim: () => Promise.resolve(),
  sweep: () => Promise.resolve(0),
  delete: (...keys) => Promise.resolve(keys.forEach((key) => kept.delete(key))),
});

export default serve(agent(options), { store });
