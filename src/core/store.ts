/**
 * The store port: where sessions are kept, and the adapter that keeps them in memory.
 *
 * @module
 */
import type { Message } from "../protocol/message.ts";
import type { Session } from "../protocol/session.ts";
import { ttlCache } from "./shelf.ts";

/** Where sessions are kept, as what JSON can say. Ids are not empty. Runs wait for it without end: where it may hang, it fails by itself in time. */
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
  /** The ids of the sessions, in an order that stays the same. */
  list(options?: ListOptions): Promise<readonly string[]>;
  /** Whether what it keeps ends with this process: a run saves nothing then for whoever finds it dead. Default: false. */
  readonly volatile?: boolean;
}

/** Which ids are listed. */
export interface ListOptions {
  /** Those that come after this one, whether it is still there or not. Default: all. */
  readonly after?: string;
  /** The most ids. Default: 100. */
  readonly limit?: number;
}

/** How much is kept in memory, and for how long. */
export interface MemoryOptions {
  /** The most sessions beside those that a run has; the one that was saved longest ago goes first. Default: 1,000. */
  readonly max?: number;
  /** Milliseconds after its last save that a session is forgotten. Default: never. */
  readonly expireIn?: number;
}

interface Kept {
  readonly version: number;
  /** The messages, as texts. */
  readonly texts: string[];
  /** What they are texts of, while a run has the session: each message is made a text once, since a transcript grows at its end. */
  readonly messages: readonly Message[];
  readonly rest: string;
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
 * assertEquals(await store.list(), ["s1"]);
 * ```
 */
export function memory({ max = 1_000, expireIn = Infinity }: MemoryOptions = {}): Store {
  /** As texts, so that nobody changes what is kept. */
  const sessions = ttlCache<Kept>({ max, expireIn });

  return {
    volatile: true,
    load(id) {
      const kept = sessions.get(id);
      return Promise.resolve(kept && { ...JSON.parse(kept.rest), messages: JSON.parse(`[${kept.texts.join()}]`) });
    },
    save: ({ messages, ...session }) =>
      Promise.try(() => {
        const { id, run } = session;
        const kept = sessions.get(id);
        if ((kept?.version ?? 0) !== session.version) return undefined;
        const version = session.version + 1;
        const rest = JSON.stringify({ ...session, version });
        const texts = textsOf(messages, kept);
        sessions.put(id, { version, texts, messages: run ? messages : [], rest }, run?.status === "running");
        return version;
      }),
    delete(id) {
      sessions.remove(id);
      return Promise.resolve();
    },
    list({ after = "", limit = 100 } = {}) {
      return Promise.resolve(sessions.ids().filter((id) => id > after).sort().slice(0, limit));
    },
  };
}

/** The texts of messages; those that were kept before are not made again, and a list that has only grown goes on. */
function textsOf(messages: readonly Message[], before?: Kept): string[] {
  const changed = messages.findIndex((message, index) => message !== before?.messages[index]);
  const same = changed < 0 ? messages.length : changed;
  const added = messages.slice(same).map((message) => JSON.stringify(message));
  const texts = before?.texts.length === same ? before.texts : before?.texts.slice(0, same) ?? [];
  texts.push(...added);
  return texts;
}
