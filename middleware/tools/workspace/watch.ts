/**
 * Reports the changes that others make to the files of a run.
 *
 * @module
 */
import type { Scope } from "../../../mod.ts";
import { cancellationOf, type FileChange } from "../../../src/core/kit.ts";
import type { FileEditor } from "./file_editor.ts";
import { isIgnored } from "./walk.ts";

/**
 * Emits `file.changed` for the changes that others make; the calls of the run emit their own. Returns a function that ends the watch. Never rejects:
 * failures are reported to the operator.
 */
export async function watch(editor: FileEditor, { emit, run }: Scope): Promise<() => Promise<void>> {
  /** Aborts pending emissions; created with the first change. */
  let over: AbortController | undefined;
  let ended = false;
  const pending = new Set<Promise<void>>();

  async function emitIfForeign(change: FileChange, signal: AbortSignal): Promise<void> {
    try {
      // under the lock of the file, no call of this run is in the middle of writing it
      await editor.locks.hold(change.path, cancellationOf(signal), async () => {
        if (!await editor.wroteLast(change.path) && !signal.aborted) emit({ type: "file.changed", ...change });
      });
    } catch (error) {
      if (!signal.aborted) run.report(error);
    }
  }

  function changed(change: FileChange): void {
    if (ended || isIgnored(change.path)) return;
    over ??= new AbortController();
    const emission = emitIfForeign(change, over.signal).finally(() => pending.delete(emission)); // it reports its own failure
    pending.add(emission);
  }

  async function reported<T>(work: () => Promise<T> | undefined): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      run.report(error);
      return undefined;
    }
  }

  const end = await reported(() => editor.files.watch?.(changed));
  return async () => {
    ended = true;
    over?.abort();
    await reported(() => end?.());
    await Promise.all(pending);
  };
}
