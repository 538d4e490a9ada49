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
});

export default serve(agent(options), { store });
