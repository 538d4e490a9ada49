/**
 * The store port: where sessions are kept, and the adapter that keeps them in memory.
 *
 * @module
 */
import type { Message } from "../protocol/message.ts";
import type { Session } from "../protocol/session.ts";
import { boundedCache } from "./bounded_cache.ts";

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

/** The bounds of `memory()`. */
export interface MemoryOptions {
  /** The number of sessions without a run. Beyond, the one that was saved longest ago is deleted. Default: 1,000. */
  readonly max?: number;
  /**
   * The bytes of all sessions as JSON, counted as two for each character. Beyond, sessions without a run are deleted, the one that was saved longest ago first.
   * If only sessions with a run are left, `save()` rejects with a `CapacityError`. Default: 67,108,864.
   */
  readonly maxBytes?: number;
  /** The same for the sessions of one owner. Default: a quarter of `maxBytes`. */
  readonly maxOwnerBytes?: number;
  /** Milliseconds after its last save that a session is deleted. Default: never. */
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
export function memory(
  { max = 1_000, maxBytes = 67_108_864, maxOwnerBytes = maxBytes / 4, expireIn = Infinity }: MemoryOptions = {},
): Store {
  /** As texts, so that nobody changes what is kept. */
  const sessions = boundedCache<Kept>({ max, maxBytes, maxOwnerBytes, expireIn });

  return {
    volatile: true,
    load(id) {
      const kept = sessions.get(id);
      return Promise.resolve(kept && { ...JSON.parse(kept.rest), messages: JSON.parse(`[${kept.texts.join()}]`) });
    },
    save: ({ messages, ...session }) =>
      Promise.try(() => {
        const { id, run, owner } = session;
        const kept = sessions.get(id);
        if ((kept?.version ?? 0) !== session.version) return undefined;
        const version = session.version + 1;
        const rest = JSON.stringify({ ...session, version });
        const { texts, added } = textsOf(messages, kept);
        const bytes = 2 * [...texts, ...added].reduce((sum, text) => sum + text.length, rest.length);
        const value = { version, texts, messages: run ? messages : [], rest };
        sessions.put(id, value, { bytes, owner, pinned: run !== undefined });
        texts.push(...added); // not before it is known to fit
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

/** Returns the messages as JSON: those that were stored before, in a list that can be extended, and those that are to be added. */
function textsOf(messages: readonly Message[], before?: Kept): { readonly texts: string[]; readonly added: string[] } {
  const changed = messages.findIndex((message, index) => message !== before?.messages[index]);
  const same = changed < 0 ? messages.length : changed;
  const added = messages.slice(same).map((message) => JSON.stringify(message));
  const texts = before?.texts.length === same ? before.texts : before?.texts.slice(0, same) ?? [];
  return { texts, added };
}
