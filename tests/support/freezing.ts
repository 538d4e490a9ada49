/**
 * A journal that freezes at a call, as a database does that is stopped or behind a broken network.
 *
 * @module
 */
import { memory } from "@jizai/jizai";
import type { Journal } from "@jizai/jizai/session/durable";

/**
 * The effect of a frozen call. "dropped": it never has one, and fails at the thaw. "late": it has its effect at the thaw. "unanswered": it has its effect at once, and
 * never returns. "broken": it has its effect at once, and fails at once.
 */
export type Freeze = "dropped" | "late" | "unanswered" | "broken";

/** The ways in which a journal freezes. */
export const freezes: readonly Freeze[] = ["dropped", "late", "unanswered", "broken"];

/** Creates a journal that can be frozen. */
export function freezingJournal() {
  const base = memory().journal;
  let calls = 0;
  let frozen: {
    readonly at: number;
    readonly freeze: Freeze;
    readonly met: PromiseWithResolvers<void>;
    readonly thaw: PromiseWithResolvers<void>;
  } | undefined;

  function around<A extends readonly unknown[], R>(work: (...args: A) => Promise<R>): (...args: A) => Promise<R> {
    return async (...args) => {
      const { at = Infinity, freeze, thaw, met } = frozen ?? {};
      if (calls++ < at || !thaw) return await work(...args);
      met?.resolve();
      if (freeze === "unanswered" || freeze === "broken") await work(...args);
      if (freeze === "broken") throw new Error("The connection was reset");
      if (freeze === "unanswered") return await new Promise<never>(() => {});
      await thaw.promise;
      if (freeze === "dropped") throw new Error("The connection was closed");
      return await work(...args);
    };
  }

  const journal: Journal = {
    ...base,
    head: around(base.head),
    open: around(base.open),
    entries: around(base.entries),
    append: around(base.append),
    post: around(base.post),
    read: around(base.read),
    pending: around(base.pending),
    trim: around(base.trim),
    delete: around(base.delete),
  };
  return {
    /** The journal as it is stored, which never freezes. */
    base,
    journal,
    /** Freezes the journal after `more` further calls. Returns a promise that resolves at the first call after them. */
    freeze(freeze: Freeze, more: number): Promise<void> {
      const met = Promise.withResolvers<void>();
      frozen = { at: calls + more, freeze, met, thaw: Promise.withResolvers() };
      return met.promise;
    },
    /** Lets the journal work again. */
    thaw(): void {
      const { thaw } = frozen ?? {};
      frozen = undefined;
      thaw?.resolve();
    },
  };
}
