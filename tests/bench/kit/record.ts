/**
 * Records of runs that no agent executes: events that are appended to a journal.
 *
 * @module
 */
import type { Journal } from "@jizai/jizai/session/durable";
import { journalKey, runIdOf } from "../../../src/core/journal.ts";

/** A record to which events are appended. */
interface GrowingRecord {
  /** The id of the run. */
  readonly run: string;
  /** Appends events. The last ones end the run. */
  append(lines: readonly string[], isLast: boolean): Promise<void>;
}

/** Creates the record of a run in a session of its own. */
export async function growingRecord(journal: Journal): Promise<GrowingRecord> {
  const session = crypto.randomUUID();
  const [key, holder] = [journalKey(undefined, session), session];
  const head = { run: 1, base: 1, waiting: 0, head: "{}", last: 0, entries: [] };
  const running = { ...head, state: "running" } as const;
  await journal.append(key, { from: undefined, to: { holder, n: 1 }, created: { session }, change: running });
  let [n, first] = [1, 1];
  return {
    run: runIdOf({ key, run: 1 }),
    async append(lines, isLast) {
      const marks = { from: { holder, n }, to: { holder, n: n + 1 } };
      const change = isLast && { change: { ...head, state: "over" } as const };
      const done = await journal.append(key, { ...marks, events: { first, lines }, ...change });
      if (!done?.stored) throw new Error("Cannot measure: the journal refused events");
      n++;
      first += lines.length;
    },
  };
}
