/** A custom store with the code for several processes: leases, checkpoints and messages. */
import { agent, serve, type Session } from "@jizai/jizai";
import { durable } from "@jizai/jizai/session/durable";
import { options } from "../assistant.ts";

const sessions = new Map<string, Session>();

export const store = durable({
  load: (id) => Promise.resolve(sessions.get(id)),
  save(session) {
    const version = session.version + 1;
    sessions.set(session.id, { ...session, version });
    return Promise.resolve(version);
  },
  delete: (id) => Promise.resolve(void sessions.delete(id)),
  list: () => Promise.resolve([...sessions.keys()]),
  pending(before, limit) {
    const due = [...sessions.values()].filter(({ lease }) => lease && lease.until <= before);
    return Promise.resolve(due.map(({ id }) => id).slice(0, limit));
  },
  touch({ id }, until) {
    const session = sessions.get(id);
    if (session) sessions.set(id, { ...session, lease: { ...session.lease, until } });
    return Promise.resolve(session !== undefined);
  },
});

export default serve(agent(options), { store });
