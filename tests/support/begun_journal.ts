/**
 * Appends for tests of databases: one that creates a journal, those that add events to its run, and one that ends it.
 *
 * @module
 */
import { user } from "@jizai/jizai";
import type { Append } from "../../src/core/journal.ts";

/** Returns the append that creates the journal of a session, with an entry and the first event of its run. */
export function begun(session: string): Append {
  const entries = [{ type: "message" as const, message: user("a") }];
  return {
    from: undefined,
    to: { holder: "one", n: 1 },
    created: { session },
    change: { run: 1, state: "running", base: 1, waiting: 0, head: "{}", last: 0, entries },
    events: { first: 1, lines: ["1"] },
  };
}

/** Returns append `n` after those of one holder, which adds events from number `n` on. */
export function added(n: number, lines: readonly string[], holder = "one"): Append {
  return { from: { holder: "one", n: n - 1 }, to: { holder, n }, events: { first: n, lines } };
}

/** Returns append `n` after those of one holder, which ends the run with events from number `n` on. */
export function ended(n: number, lines: readonly string[]): Append {
  const change = { run: 1, state: "over" as const, base: 1, waiting: 0, head: "{}", last: 1, entries: [] };
  return { ...added(n, lines), change };
}
