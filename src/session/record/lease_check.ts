/**
 * Following a log with a timer: if no event comes for the length of a lease, the process of the run may be dead.
 *
 * @module
 */
import { anySignal } from "../../core/lib/cancellation.ts";
import type { Log, LogPage } from "../log.ts";

/** Options of `followWithLeaseCheck()`. */
export interface LeaseCheckOptions {
  /** The number of the event before the first that is returned. */
  readonly after: number;
  /** Ends the stream when it aborts. */
  readonly signal: AbortSignal;
  /** Milliseconds without an event after which `check` is called, each time. */
  readonly lease: number;
  /** Checks whether the run is still executed, and resumes or ends it if not. */
  readonly check: () => Promise<void>;
}

/** Yields the logged events and then those that follow, until the run ends or pauses, or until some events have been deleted. */
export async function* followWithLeaseCheck(
  log: Log,
  key: string,
  { after, signal, lease, check }: LeaseCheckOptions,
): AsyncGenerator<LogPage> {
  for (let at = after;;) {
    const silence = new AbortController();
    const startTimer = () => setTimeout(() => silence.abort(), lease);
    let timer = startTimer();
    try {
      for await (const page of log.tail(key, at, anySignal([signal, silence.signal]))) {
        clearTimeout(timer);
        if (page.first > at + 1) return;
        yield page;
        at += page.lines.length;
        timer = startTimer();
      }
    } finally {
      clearTimeout(timer);
    }
    if (signal.aborted || !silence.signal.aborted) return;
    await check();
  }
}
