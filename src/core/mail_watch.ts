/**
 * The watch of a run's journal for mail, which other processes post while the run writes nothing.
 *
 * @module
 */
import type { Journal } from "./journal.ts";

/** The least milliseconds between two looks for mail in a journal that does not notify. */
const shortestLook = 1_000;

/** Calls `look` soon after each post, once at a time. It returns no promise if a write will tell of the mail. Returns the function that ends the watch. */
export function watchMail(journal: Journal, key: string, look: () => Promise<void> | undefined): () => void {
  let isLooking = false;
  let lookedAt = 0;

  /** Looks for mail. A failure is left to the next write. */
  function lookNow(): void {
    const done = isLooking ? undefined : look();
    if (!done) return;
    isLooking = true;
    lookedAt = performance.now();
    done.catch(() => {}).finally(() => isLooking = false);
  }

  const notify = (isPost = performance.now() > lookedAt + shortestLook) => void (isPost && lookNow());
  const end = journal.watch(key, { notify, fail() {} }); // without notifications, the next write tells of mail
  const timer = journal.pollEvery === undefined
    ? undefined
    : setInterval(lookNow, Math.max(journal.pollEvery, shortestLook));
  return () => {
    end();
    clearInterval(timer);
  };
}
