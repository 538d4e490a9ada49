/**
 * The store port: where sessions are kept, and the adapter that keeps them in memory.
 *
 * @module
 */
import type { Session } from "../protocol/session.ts";

/** Where sessions are kept. */
export interface Store {
  /** The session, or nothing where there is none of that id. */
  load(id: string): Promise<Session | undefined>;
  /**
   * Keeps `session` if the version kept so far is `session.version` (0: none is), and gives the version it has now.
   * Gives nothing, and keeps nothing, where somebody else was faster.
   */
  save(session: Session): Promise<number | undefined>;
  /** Forgets it. */
  delete(id: string): Promise<void>;
}

/** How much is kept in memory. */
export interface MemoryOptions {
  /** The most sessions; the one that was saved longest ago goes first. Default: 1,000. */
  readonly max?: number;
}

/**
 * Keeps sessions in this process, until it ends.
 *
 * ```ts
 * import { agent, memory } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const store = memory();
 * const assistant = agent({ model: scripted("Hello!", "Hello again!") });
 * await assistant.run({ prompt: "Hi", session: "s1", store }).result;
 * const { messages } = await assistant.run({ prompt: "Hi", session: "s1", store }).result;
 * assertEquals(messages.length, 4);
 * ```
 */
export function memory({ max = 1_000 }: MemoryOptions = {}): Store {
  const sessions = new Map<string, Session>();
  return {
    load: (id) => Promise.resolve(sessions.get(id)),
    save(session) {
      const { id, version } = session;
      if ((sessions.get(id)?.version ?? 0) !== version) return Promise.resolve(undefined);
      sessions.delete(id);
      sessions.set(id, { ...session, version: version + 1 });
      const [oldest] = sessions.keys();
      if (sessions.size > max && oldest !== undefined) sessions.delete(oldest);
      return Promise.resolve(version + 1);
    },
    delete(id) {
      sessions.delete(id);
      return Promise.resolve();
    },
  };
}
