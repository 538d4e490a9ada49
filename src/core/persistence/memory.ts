/**
 * Sessions in memory.
 *
 * @module
 */
import type { Message } from "../../protocol/message.ts";
import { promiseTry } from "../../stream/promise_try.ts";
import { boundedCache, boundsOf, type EntryOptions } from "./bounded_cache.ts";
import { writeInMemory } from "./memory_writer.ts";
import type { Lease } from "./session.ts";
import { isListed, type Store } from "./store.ts";

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
  /** Milliseconds after its last save that a session is deleted, unless a run is in progress. Default: never. */
  readonly expireIn?: number;
}

interface Stored {
  readonly version: number;
  /** The messages as JSON. */
  readonly texts: string[];
  /** The number of characters of `texts`. */
  readonly length: number;
  /** The messages of `texts` while a run has the session: each message is serialized once, since a transcript grows at its end. */
  readonly messages: readonly Message[];
  readonly rest: string;
  readonly lease: Lease | undefined;
  readonly entry: EntryOptions;
}

/**
 * Keeps sessions in the memory of this process.
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
export function memory(options: MemoryOptions = {}): Store {
  /** Sessions as JSON, so that no caller can change what is stored. */
  const sessions = boundedCache<Stored>(boundsOf("Cannot create memory()", options, Infinity));
  /** The ids of sessions that were saved with a lease. */
  const leased = new Set<string>();

  return {
    writer: writeInMemory,
    load(id) {
      const stored = sessions.get(id);
      return Promise.resolve(
        stored && {
          ...JSON.parse(stored.rest),
          messages: JSON.parse(`[${stored.texts.join()}]`),
          ...(stored.lease && { lease: { ...stored.lease } }),
        },
      );
    },
    save: ({ messages, lease, ...session }) =>
      promiseTry(() => {
        const { id, run, owner } = session;
        const stored = sessions.get(id);
        if ((stored?.version ?? 0) !== session.version) return undefined;
        const version = session.version + 1;
        const rest = JSON.stringify({ ...session, version });
        const { texts, added, length } = serialize(messages, stored);
        const inUse = until(run && !run.exit ? lease?.until ?? Infinity : 0);
        const entry = { bytes: 2 * (length + rest.length), owner, pinned: run !== undefined, inUse };
        sessions.put(id, { version, texts, length, messages: run ? messages : [], rest, lease, entry }, entry);
        texts.push(...added); // only once it is known to fit
        if (lease) leased.add(id);
        else leased.delete(id);
        return version;
      }),
    delete(id) {
      sessions.remove(id);
      return Promise.resolve();
    },
    list({ after = "", limit = 100 } = {}) {
      return Promise.resolve(sessions.ids().filter((id) => id > after && isListed(id)).sort().slice(0, limit));
    },
    pending(before, limit) {
      const due: (readonly [id: string, until: number])[] = [];
      for (const id of leased) {
        const { until = Infinity } = sessions.get(id)?.lease ?? {};
        if (until === Infinity) leased.delete(id); // it was deleted, or has expired
        if (until <= before) due.push([id, until]);
      }
      due.sort(([_, a], [__, b]) => a - b);
      return Promise.resolve(due.slice(0, limit).map(([id]) => id));
    },
    touch: ({ id, version, lease }, end) =>
      promiseTry(() => {
        const stored = sessions.get(id);
        if (!stored?.lease || stored.version !== version || stored.lease.until !== lease?.until) return false;
        const entry = { ...stored.entry, inUse: until(end) };
        sessions.put(id, { ...stored, lease: { ...stored.lease, until: end }, entry }, entry);
        return true;
      }),
  };
}

/** Returns a function that returns true until a time. It is kept with a session, so it must not keep anything else. */
function until(time: number): () => boolean {
  return () => time > Date.now();
}

/** Returns the messages as JSON: those that were stored before, in a list that can be extended, and those to add. `length` counts the characters of both. */
function serialize(
  messages: readonly Message[],
  stored?: Stored,
): { readonly texts: string[]; readonly added: string[]; readonly length: number } {
  const isBeginning = stored?.texts.length === stored?.messages.length &&
    stored?.messages.every((message, index) => message === messages[index]);
  const { texts, length }: Pick<Stored, "texts" | "length"> = stored && isBeginning ? stored : { texts: [], length: 0 };
  const added = messages.slice(texts.length).map((message) => JSON.stringify(message));
  return { texts, added, length: added.reduce((sum, text) => sum + text.length, length) };
}
