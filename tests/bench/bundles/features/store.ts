/** A custom store with the code for several processes: leases, checkpoints and messages. */
import { agent, serve } from "@jizai/jizai";
import { durable, type NumberedEntry, type StoredHead } from "@jizai/jizai/session/durable";
import { options } from "../assistant.ts";

const heads = new Map<string, StoredHead>();
const entries = new Map<string, NumberedEntry[]>();

export const store = durable({
  head: (id) => Promise.resolve(heads.get(id)),
  open(id) {
    const head = heads.get(id);
    return Promise.resolve(head && { ...head, entries: entries.get(id)?.slice(head.base - 1) ?? [] });
  },
  entries: (id, first, last) => Promise.resolve(entries.get(id)?.slice(first - 1, last) ?? []),
  append(id, { to, head, base, first, entries: added, until = null }) {
    const list = entries.get(id) ?? [];
    for (const [index, entry] of added.entries()) list.push([first + index, entry]);
    entries.set(id, list);
    heads.set(id, { mark: to, head, base, last: list.length, until });
    return Promise.resolve(true);
  },
  delete: (id) => Promise.resolve(void heads.delete(id)),
  list: () => Promise.resolve([...heads.keys()]),
  pending(before, limit) {
    const due = [...heads].filter(([, { until }]) => until !== null && until <= before);
    return Promise.resolve(due.map(([id]) => id).slice(0, limit));
  },
  touch({ id }, until) {
    const head = heads.get(id);
    if (head) heads.set(id, { ...head, until });
    return Promise.resolve(head !== undefined);
  },
});

export default serve(agent(options), { store });
