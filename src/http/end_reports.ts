/**
 * Reports of the ends of runs to the `onEnd` option, delivered at least once.
 *
 * @module
 */
import type { NumberedEvent } from "../core/events.ts";
import { delay } from "../core/lib/cancellation.ts";
import { SharedWork } from "../core/lib/locks.ts";
import { reportError } from "./error_response.ts";
import type { RunEnd, ServerOptions } from "./options.ts";
import { isLastEvent } from "../protocol/event.ts";
import type { reportEntriesOf, StoredReports } from "../session/durable/reports.ts";
import { ownedKey } from "../session/owned_key.ts";
import type { RecoveredRun, RunHost } from "../session/record/run_host.ts";
import { type Sink, SinkFilter } from "../stream/channel.ts";

/** Reports the ends of runs to the `onEnd` option. */
export interface EndReports extends StoredReports {
  /** Remembers that the end of a run has to be reported. Called before the run begins. */
  expect(run: RecoveredRun): Promise<EndReport>;
}

/** The report of one run, from its start or from its resumption. */
export interface EndReport {
  /** Returns a sink that notes the last event of the run. */
  watch(sink: Sink<NumberedEvent>): Sink<NumberedEvent>;
  /**
   * Reports the event that was noted, and tries again if that fails. Called when the run is over here. If it continues in another process, that process
   * reports its end. Never rejects.
   */
  deliver(continues: () => Promise<boolean>): Promise<void>;
  /** Returns the report of another run, which has begun in place of the expected one. */
  move(run: RecoveredRun): Promise<EndReport>;
  /**
   * Leaves the end that was noted to `recover()`: the run has not begun here. If `isGone`, there is no such run, and nothing is to be reported. A run that
   * should resume after event `pausedAt` is still paused there, which is not reported again.
   */
  abandon({ isGone, pausedAt }: { readonly isGone: boolean; readonly pausedAt: number | undefined }): Promise<void>;
}

/** Milliseconds before each retry of a report in the same process. Later, `recover()` tries again. */
const retryDelays = [1_000, 5_000, 25_000];

/** Creates the reports of a server. Returns undefined if it has no `onEnd` option. */
export function endReports(
  { onEnd, store, lease, onError, signal }: ServerOptions,
  host: Pick<RunHost, "head">,
): EndReports | undefined {
  if (!onEnd) return undefined;
  const report = onEnd;
  // a durable store brings the code; its type is `reportEntriesOf` of the same package
  const entries = store && (store.durable?.reports as typeof reportEntriesOf | undefined)?.(store, host, lease);
  /** The runs whose latest end is being reported here, by key. */
  const pending = new Map<string, SharedWork>();

  /** Reports an end once. Returns whether that succeeded. */
  async function attempt(run: RecoveredRun, end: NumberedEvent): Promise<boolean> {
    try {
      await report(endOf(run, end));
      return true;
    } catch (error) {
      reportError(onError, error, run);
      return false;
    }
  }

  async function deliver(run: RecoveredRun, end: NumberedEvent, continues: () => Promise<boolean>): Promise<void> {
    // a pause is reported also if the run has been resumed since
    if (!isPause(end) && await continues().catch(() => true)) return; // if the store fails, recover() reports the end later
    for (const ms of [0, ...retryDelays]) {
      if (ms > 0 && !await elapsed(ms)) return;
      if (await attempt(run, end)) return await entries?.remove(run, end);
    }
  }

  /** Waits. Resolves to false if the server shuts down. */
  async function elapsed(ms: number): Promise<boolean> {
    return await delay(ms, signal ?? new AbortController().signal).then(() => true, () => false); // it rejects only if the signal aborts
  }

  return {
    isPending: ({ run, owner }) => pending.get(ownedKey(owner, run))?.lives === true,
    attempt,
    remove: async (run, end) => await entries?.remove(run, end),
    expect,
  };

  async function expect(run: RecoveredRun, moved?: Noted): Promise<EndReport> {
    const isReported = await entries?.save(run);
    const noted: Noted = moved ?? { key: "", end: undefined, reporting: undefined };
    noted.key = ownedKey(run.owner, run.run);
    if (noted.reporting) pending.set(noted.key, noted.reporting);
    function leave(): void {
      noted.reporting?.end();
      if (pending.get(noted.key) === noted.reporting) pending.delete(noted.key);
    }
    return {
      watch: (sink) =>
        new SinkFilter(sink, (item) => {
          if (isLastEvent(item.event)) { // before a client can read it
            noted.end = item;
            pending.set(noted.key, noted.reporting ??= new SharedWork(lease));
          }
          sink.write(item);
        }),
      async move(actual) {
        pending.delete(noted.key);
        await entries?.remove(run);
        return await expect(actual, noted);
      },
      async deliver(continues) {
        const { end } = noted;
        if (!end) return; // it was handed over
        await deliver(run, end, continues).catch((error) => void reportError(onError, error, run));
        leave();
      },
      async abandon({ isGone, pausedAt }) {
        leave();
        if (isGone) await entries?.remove(run);
        if (isReported && pausedAt !== undefined) await entries?.removeReported(run, pausedAt);
      },
    };
  }
}

/** The end of a run that was noted, and the work that reports it. */
interface Noted {
  key: string;
  end: NumberedEvent | undefined;
  reporting: SharedWork | undefined;
}

function isPause({ event }: NumberedEvent): boolean {
  return event.type === "run.paused";
}

/** Returns the report of the last event of a run. Its id is the same each time it is delivered. */
function endOf(run: RecoveredRun, end: NumberedEvent): RunEnd {
  return { ...run, id: `${run.run}:${isPause(end) ? end.id : "end"}`, event: end.event };
}
