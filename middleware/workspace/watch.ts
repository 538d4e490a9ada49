/**
 * The watch: whoever watches a run hears what others do to its files.
 *
 * @module
 */
import { stopping } from "../../src/core/abandon.ts";
import type { Scope } from "../../src/core/scope.ts";
import type { FileChange } from "../../src/protocol/files.ts";
import type { Desk } from "./desk.ts";
import { isClosed } from "./walk.ts";

/** Emits what becomes of the files of `desk`, until it is disposed of; what the run itself does to them, its calls have told already. */
export async function watch(desk: Desk, { emit, run }: Scope): Promise<AsyncDisposable> {
  const over = new AbortController();
  const telling = new Set<Promise<void>>();

  async function tell(change: FileChange): Promise<void> {
    try {
      // when whoever works on it is done, it can be seen whether it was them
      await desk.locks.hold(change.path, stopping(over.signal), async () => {
        if (!await desk.isOwn(change.path) && !over.signal.aborted) emit({ type: "file.changed", ...change });
      });
    } catch (error) {
      if (!over.signal.aborted) run.report(error);
    }
  }

  function hear(change: FileChange): void {
    if (isClosed(change.path)) return;
    const told = tell(change).finally(() => telling.delete(told)); // it reports its own failure
    telling.add(told);
  }

  async function begin(): Promise<AsyncDisposable | undefined> {
    try {
      return await desk.files.watch?.(hear);
    } catch (error) {
      run.report(error);
      return undefined;
    }
  }

  const watching = await begin();
  return {
    async [Symbol.asyncDispose]() {
      over.abort();
      try {
        await watching?.[Symbol.asyncDispose]();
      } catch (error) {
        run.report(error);
      }
      await Promise.all(telling);
    },
  };
}
