/**
 * The memory of one agent: it keeps the runs without a named session too, so that the session of a result continues the conversation.
 *
 * @module
 */
import { promiseTry } from "../../../stream/tick.ts";
import type { EngineRun } from "../../run/run.ts";
import type { Unsaved } from "../session.ts";
import { SessionVersion } from "../session_version.ts";
import type { RunStore } from "../store.ts";
import { CapacityError } from "./bounded_cache.ts";
import { appendTo, sessionCache, sessionsIn } from "./sessions.ts";
import { MemoryWriter } from "./writer.ts";

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
  const sessions = sessionCache();
  const store = sessionsIn(sessions);
  const kept = new Map<string, KeptRun>();
  let left = maxCharacters;

  function take(id: string): KeptRun | undefined {
    const run = kept.get(id);
    if (run) left += run.size;
    kept.delete(id);
    return run;
  }

  function keep(session: Unsaved): void {
    const size = sizeOf(session);
    if (size > maxCharacters) throw new CapacityError(`Cannot keep session "${session.id}": it is too large`);
    kept.set(session.id, { session, size });
    left -= size;
    for (const oldest of kept.keys()) {
      if (left >= 0 && kept.size <= maxRuns) break;
      take(oldest);
    }
  }

  /** Stores a kept run, before its session is read. */
  function stored(id: string): Promise<unknown> {
    const run = take(id);
    const additionOf = (session: Unsaved) => SessionVersion.none.next(session, { holder: id, isWriter: true }).addition;
    return promiseTry(() => run && appendTo(sessions, id, additionOf(run.session)));
  }

  return {
    ...store,
    writer: (store, run: EngineRun, options) =>
      new MemoryWriter(store, run, { ...options, ...(!run.parent && { keep }) }),
    head: (id) => stored(id).then(() => store.head(id)),
    open: (id) => stored(id).then(() => store.open(id)),
    delete: (id) => stored(id).then(() => store.delete(id)),
  };
}

/** Returns the number of characters of a value, without a call of its `toJSON()`. */
function sizeOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce<number>((sum, each) => sum + sizeOf(each), 8);
}
