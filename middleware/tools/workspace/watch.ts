/**
 * The watch: whoever watches a run hears what others do to its files.
 *
 * @module
 */
import type { FileChange, Scope } from "../../../mod.ts";
import { cancellationOf } from "../../../src/core/kit.ts";
import type { Desk } from "./desk.ts";
import { isClosed } from "./walk.ts";

/**
 * Emits what becomes of the files of `desk`; what the run itself does to them, its calls have told already. Gives what ends that, and never rejects:
 * the operator is told instead.
 */
export async function watch(desk: Desk, { emit, run }: Scope): Promise<() => Promise<void>> {
  /** Ends what is being told: made when there is something to tell. */
  let over: AbortController | undefined;
  let ended = false;
  const telling = new Set<Promise<void>>();

  async function tell(change: FileChange, signal: AbortSignal): Promise<void> {
    try {
      // when whoever works on it is done, it can be seen whether it was them
      await desk.locks.hold(change.path, cancellationOf(signal), async () => {
        if (!await desk.isOwn(change.path) && !signal.aborted) emit({ type: "file.changed", ...change });
      });
    } catch (error) {
      if (!signal.aborted) run.report(error);
    }
  }

  function hear(change: FileChange): void {
    if (ended || isClosed(change.path)) return;
    over ??= new AbortController();
    const told = tell(change, over.signal).finally(() => telling.delete(told)); // it reports its own failure
    telling.add(told);
  }

  /** What `work` comes to, where it can be done. */
  async function tried<T>(work: () => Promise<T> | undefined): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      run.report(error);
      return undefined;
    }
  }

  const end = await tried(() => desk.files.watch?.(hear));
  return async () => {
    ended = true;
    over?.abort();
    await tried(() => end?.());
    await Promise.all(telling);
  };
}
