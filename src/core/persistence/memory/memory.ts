/**
 * Sessions in memory.
 *
 * @module
 */
import { promiseTry } from "../../../stream/tick.ts";
import { expectNames } from "../../../protocol/shape.ts";
import { sessionsOf } from "../session_version.ts";
import { type Addition, isListed, type Store } from "../store.ts";
import { boundNames } from "./bounded_cache.ts";
import { appendTo, sessionCache, sessionsIn, touchIn } from "./sessions.ts";

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
  expectNames("Cannot create memory()", options, boundNames);
  const sessions = sessionCache(options);
  /** The ends of leases, by session. */
  const leases = new Map<string, number>();

  /** Notes the lease of a stored session. */
  function note(id: string, until: number | null | undefined): void {
    if (typeof until === "number") leases.set(id, until);
    else if (until === null) leases.delete(id);
  }

  const operations = {
    ...sessionsIn(sessions),
    append: (id: string, addition: Addition) =>
      promiseTry(() => {
        const isStored = appendTo(sessions, id, addition);
        if (isStored) note(id, addition.until);
        return isStored;
      }),
  };
  return {
    ...operations,
    ...sessionsOf(operations),
    list({ after = "", limit = 100 } = {}) {
      return Promise.resolve(sessions.ids().filter((id) => id > after && isListed(id)).sort().slice(0, limit));
    },
    pending(before, limit) {
      for (const id of leases.keys()) if (!sessions.get(id)) leases.delete(id); // it was deleted, or has expired
      const due = [...leases].filter(([, until]) => until <= before).sort(([, a], [, b]) => a - b);
      return Promise.resolve(due.slice(0, limit).map(([id]) => id));
    },
    touch: (session, end) =>
      promiseTry(() => {
        const moved = touchIn(sessions, session, end);
        if (moved) leases.set(session.id, end);
        return moved;
      }),
  };
}
