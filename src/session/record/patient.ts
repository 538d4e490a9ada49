/**
 * Following a record with an eye on the clock: where nothing comes, its run may be dead.
 *
 * @module
 */
import type { Log, LogPage } from "../log.ts";

/** How a record is followed. */
export interface PatientOptions {
  /** The number of the event before the first that is given. */
  readonly after: number;
  /** Ends it. */
  readonly signal: AbortSignal;
  /** Milliseconds without an event after which `look` is called, each time. */
  readonly silence: number;
  /** Looks what has become of the run. */
  readonly look: () => Promise<void>;
}

/** Gives what is on record, and then what comes, until the run ends or pauses; or until some of it has been forgotten. */
export async function* patiently(
  log: Log,
  id: string,
  { after, signal, silence, look }: PatientOptions,
): AsyncGenerator<LogPage> {
  for (let at = after;;) {
    const silent = new AbortController();
    const wait = () => setTimeout(() => silent.abort(), silence);
    let timer = wait();
    try {
      for await (const page of log.tail(id, at, AbortSignal.any([signal, silent.signal]))) {
        clearTimeout(timer);
        if (page.first > at + 1) return;
        yield page;
        at += page.lines.length;
        timer = wait();
      }
    } finally {
      clearTimeout(timer);
    }
    if (signal.aborted || !silent.signal.aborted) return;
    await look();
  }
}
