/**
 * Runs that write events to a journal, one append after the other, and their followers.
 *
 * @module
 */
import type { Appended, Journal, JournalPage } from "../../src/core/journal.ts";
import { followers } from "../../src/session/followers.ts";

/** A run that works, the first of its session. */
export interface WritingRun {
  /** Stores the next events. Resolves to undefined if the journal does not have the mark of this writer. */
  add(...lines: readonly string[]): Promise<Appended | undefined>;
  /** Ends the run. */
  end(): Promise<Appended | undefined>;
}

const change = { run: 1, state: "running", base: 1, waiting: 0, head: "{}", last: 0, entries: [] } as const;

/** Begins a run in a new journal. */
export async function beginRun(journal: Journal, key: string): Promise<WritingRun> {
  let [n, events] = [1, 0];
  const mark = () => ({ holder: "writer", n });
  const next = () => ({ from: mark(), to: { holder: "writer", n: ++n } });
  await journal.append(key, { from: undefined, to: mark(), created: { session: key }, change, due: 60_000 });
  return {
    add(...lines) {
      const first = events + 1;
      events += lines.length;
      return journal.append(key, { ...next(), events: { first, lines } });
    },
    end: () => journal.append(key, { ...next(), change: { ...change, state: "over" }, due: null }),
  };
}

/** Follows a run of a journal from its first event. */
export function followed(journal: Journal, key: string): AsyncIterator<JournalPage> {
  return followers(journal).tail({ key, run: 1 }, 0, new AbortController().signal)[Symbol.asyncIterator]();
}
