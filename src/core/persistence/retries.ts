/**
 * Retries for stores that fail now and then.
 *
 * @module
 */
import { canonicalJson } from "../lib/canonical_json.ts";
import type { Session } from "./session.ts";
import type { RunStore } from "./store.ts";

/** The number of attempts, and the milliseconds by which each delay grows. */
const attempts = 5;
const backoff = 100;

/** Saves a session with retries. A save that failed may have been stored all the same, which counts as a success. */
export async function saveWithRetries(
  store: Pick<RunStore, "load" | "save">,
  session: Session,
): Promise<number | undefined> {
  return await withRetries(async (attempt) => {
    const stored = attempt > 0 ? await store.load(session.id) : undefined;
    return stored && isSaved(session, stored) ? session.version + 1 : await store.save(session);
  });
}

/** Runs `work` until it succeeds, at most five times. */
export async function withRetries<T>(work: (attempt: number) => Promise<T>): Promise<T> {
  for (let attempt = 0;; attempt++) {
    try {
      return await work(attempt);
    } catch (error) {
      if (attempt + 1 === attempts) throw error;
      await new Promise((resolve) => setTimeout(resolve, backoff * (attempt + 1)));
    }
  }
}

/** Returns true if `stored` is `session`, apart from mail that has arrived since. */
function isSaved({ mail: _, ...session }: Session, { mail = [], ...stored }: Session): boolean {
  const arrived = stored.version - session.version - 1;
  return arrived >= 0 && arrived <= mail.length &&
    canonicalJson({ ...stored, version: 0 }) === canonicalJson({ ...session, version: 0 });
}
