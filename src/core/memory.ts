/**
 * Sessions in memory: the store, and the memory of an agent without a store.
 *
 * @module
 */
import { boundNames, CapacityError } from "./bounded_cache.ts";
import { journalKey } from "./journal.ts";
import { memoryJournal } from "./memory_journal.ts";
import type { Unsaved } from "./session.ts";
import { storeSession } from "./session_version.ts";
import { sessionsIn } from "./sessions.ts";
import type { RunStore, Store } from "./store.ts";
import { expectNames } from "../protocol/shape.ts";

// The store `memory()`, and its options.

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
  const journal = memoryJournal(options);
  return { journal, ...sessionsIn(journal) };
}

// The memory of one agent: it keeps the runs without a named session too, so that the session of a result continues the conversation.

/** The number of runs that are kept. Beyond, the oldest one is dropped. */
const maxRuns = 1_000;
/** The characters of all kept runs. Beyond, the oldest ones are dropped. */
const maxCharacters = 16_777_216;

/** A run that has ended, in the form in which its session is stored once it is continued: most never are. */
interface KeptRun {
  readonly session: Unsaved;
  readonly size: number;
}

/** Creates the memory of an agent. */
export function agentMemory(): RunStore {
  const journal = memoryJournal();
  const kept = new Map<string, KeptRun>();
  let left = maxCharacters;

  function take(id: string): KeptRun | undefined {
    const run = kept.get(id);
    if (run) left += run.size;
    kept.delete(id);
    return run;
  }

  return {
    journal,
    unsaved: {
      keep(session) {
        const size = sizeOf(session);
        if (size > maxCharacters) throw new CapacityError(`Cannot keep session "${session.id}": it is too large`);
        kept.set(session.id, { session, size });
        left -= size;
        for (const oldest of kept.keys()) {
          if (left >= 0 && kept.size <= maxRuns) break;
          take(oldest);
        }
      },
      async store(id) {
        const { session } = take(id) ?? {};
        if (session) await storeSession(journal, journalKey(session.owner, id), session);
      },
    },
  };
}

/** Returns the number of characters of a value, without a call of its `toJSON()`. */
function sizeOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce<number>((sum, each) => sum + sizeOf(each), 8);
}
