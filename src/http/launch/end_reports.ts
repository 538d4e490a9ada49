/**
 * Reports of the ends of runs, delivered at least once: an entry of the store remembers each report until it was delivered.
 *
 * @module
 */
import { delay } from "../../core/lib/cancellation.ts";
import type { NumberedEvent } from "../../core/run/events.ts";
import { hidden } from "../../core/persistence/store.ts";
import type { StoredReports } from "../../session/durable/stored_reports.ts";
import type { RecoveredRun } from "../../session/record/run_host.ts";
import { type Sink, SinkFilter } from "../../stream/channel.ts";
import type { RunEnd, ServerOptions } from "../options.ts";
import { reportError } from "../respond/error_response.ts";

/** Reports the ends of runs to the `onEnd` option. */
export interface EndReports extends StoredReports {
  /** Remembers that the end of a run has to be reported. Called before the run begins. */
  expect(run: RecoveredRun): Promise<EndReport>;
}

/** The report of one run. */
export interface EndReport {
  /** Returns a sink that notes the last event of the run. */
  watch(sink: Sink<NumberedEvent>): Sink<NumberedEvent>;
  /**
   * Reports the event that was noted, and tries again if that fails. Called when the run is over here. If it continues in another process, that process
   * reports its end. Never rejects.
   */
  deliver(continues: () => Promise<boolean>): Promise<void>;
  /** Forgets the run: it has not begun here. */
  forget(): Promise<void>;
}

/** Milliseconds before each retry of a report in the same process. Later, `recover()` tries again. */
const retryDelays = [1_000, 5_000, 25_000];

/** The leases after which a process that calls `recover()` looks whether a run has ended. */
const patience = 4;

/** Creates the reports of a server. Returns undefined if it has no `onEnd` option. */
export function endReports({ onEnd, store, lease, onError, signal }: ServerOptions): EndReports | undefined {
  if (!onEnd) return undefined;
  const report = onEnd;
  /** The last events of runs of this process, by key. */
  const ends = new Map<string, RunEnd>();

  const later = () => Math.ceil(Date.now() + patience * lease);

  async function remove(key: string): Promise<void> {
    ends.delete(key);
    await store?.delete(key);
  }

  /** Reports an end once. Returns whether that succeeded. */
  async function attempt(end: RunEnd): Promise<boolean> {
    try {
      await report(end);
      return true;
    } catch (error) {
      reportError(onError, error, end.run);
      return false;
    }
  }

  async function deliver(run: RecoveredRun, continues: () => Promise<boolean>): Promise<void> {
    const key = keyOf(run);
    const end = ends.get(key);
    if (!end) return; // it was handed over
    const isPause = end.event.type === "run.paused"; // a pause is reported also if the run has been resumed since
    if (!isPause && await continues().catch(() => true)) { // if the store fails, recover() reports the end later
      if (ends.get(key) === end) ends.delete(key);
      return;
    }
    for (const ms of [0, ...retryDelays]) {
      if (ms > 0 && !await elapsed(ms)) break;
      if (await attempt(end)) return await remove(key);
    }
    ends.delete(key);
  }

  /** Waits. Resolves to false if the server shuts down. */
  async function elapsed(ms: number): Promise<boolean> {
    return await delay(ms, signal ?? new AbortController().signal).then(() => true, () => false); // it rejects only if the signal aborts
  }

  return {
    isPending: ({ id }) => ends.has(id),
    attempt: (run, event, at) => attempt(endOf(run, event, at)),
    remove,
    async expect(run) {
      const key = keyOf(run);
      const { owner } = run;
      const entry = {
        id: key,
        version: 0,
        messages: [],
        report: { ...run, at: Date.now() },
        lease: { until: later() },
      };
      await store?.save({ ...entry, ...(owner !== undefined && { owner }) }); // an earlier process may have saved it
      return {
        watch: (sink) => watchEnd(sink, (event, id) => ends.set(key, endOf(run, event, id))),
        deliver: (continues) => deliver(run, continues).catch((error) => void reportError(onError, error, run.run)),
        forget: () => remove(key),
      };
    },
  };
}

/** Returns a sink that passes the last event of a run, with its number, to `onEnd` before it is written. */
function watchEnd(
  sink: Sink<NumberedEvent>,
  onEnd: (event: RunEnd["event"], id: number) => void,
): Sink<NumberedEvent> {
  return new SinkFilter(sink, (item) => {
    const { event, id } = item;
    if (event.type.startsWith("run.") && event.type !== "run.started") onEnd(event, id);
    sink.write(item);
  });
}

/** Returns the key of an entry. */
function keyOf({ run, owner = "" }: RecoveredRun): string {
  return hidden + JSON.stringify([owner, run]);
}

/** Returns the report of an event. Its id is the same each time it is delivered. */
function endOf(run: RecoveredRun, event: RunEnd["event"], at = 0): RunEnd {
  return { ...run, id: `${run.run}:${event.type === "run.paused" ? at : "end"}`, event };
}
