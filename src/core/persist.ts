/**
 * Stores that fail now and then: what is asked of them is asked again.
 *
 * @module
 */
import type { Session } from "../protocol/session.ts";
import { canonicalJson } from "./canonical.ts";
import type { Store } from "./store.ts";

/** How often something is tried that fails, and the milliseconds before each next try, which is later each time. */
const tries = 5;
const backoff = 100;

/** Saves: a save that failed may have been made all the same. */
export async function persist(store: Store, session: Session): Promise<number | undefined> {
  return await withRetries(async (tried) => {
    const kept = tried > 0 ? await store.load(session.id) : undefined;
    return kept && was(session, kept) ? session.version + 1 : await store.save(session);
  });
}

/** Does what may fail, a few times. */
export async function withRetries<T>(work: (tried: number) => Promise<T>): Promise<T> {
  for (let tried = 0;; tried++) {
    try {
      return await work(tried);
    } catch (error) {
      if (tried + 1 === tries) throw error;
      await new Promise((resolve) => setTimeout(resolve, backoff * (tried + 1)));
    }
  }
}

/** Whether `kept` is `session` as it was saved, with no more to it than mail that has come since. */
function was(session: Session, { run, ...kept }: Session): boolean {
  const { mail = [], ...record } = run ?? {};
  return kept.version === session.version + 1 + mail.length &&
    canonicalJson({ ...kept, ...(run && { run: record }), version: 0 }) === canonicalJson({ ...session, version: 0 });
}
