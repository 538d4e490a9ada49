/**
 * The runs of a served agent that run here.
 *
 * @module
 */
import { SessionError } from "../core/claim.ts";
import type { NumberedEvent } from "../core/events.ts";
import { nullSink, type Started } from "../core/run.ts";
import { type Asker, type Given, type Host, type LiveRun, recordId, theirs } from "../session/record/host.ts";
import { RecordError } from "../session/record/record_error.ts";
import type { Recorder } from "../session/record/recorder.ts";
import type { Records, recordsOf } from "../session/record/records.ts";
import type { Sink } from "../stream/channel.ts";
import { idOf } from "./caller.ts";
import type { Settled } from "./options.ts";
import { report, shutdown } from "./refusal.ts";
import type { Outlet } from "./stream.ts";

/** The runs that run here, and the records of all there are. */
export interface Runs extends Host {
  /** Begins a run that `out` hears, or goes on with one. */
  launch(given: Given, asker: Asker, out?: Outlet): Promise<LiveRun>;
  /** Nothing where none are kept. */
  readonly records: Records | undefined;
}

/** Keeps the runs that `start` begins. */
export function runsOf(
  start: (options: object, sink: Sink<NumberedEvent>) => Started,
  { store, log, limits, lease, singleProcess, signal, onError }: Settled,
): Runs {
  /** By the ids of their records. */
  const live = new Map<string, LiveRun>();
  signal?.addEventListener("abort", () => {
    for (const run of live.values()) run.stop("shutdown");
  });

  const host: Host = {
    keeps: store !== undefined,
    lease,
    signal,
    load: async (id, asker) => theirs(await store?.load(idOf(id)), asker),
    save: async (session) => await store?.save(session),
    get: (run, asker) => live.get(recordId(run, asker)),
    isDead: (run, asker) => singleProcess && !live.has(recordId(run, asker)),
    launch,
  };
  // whoever makes a log takes what a server does with it from where this type is from
  const records = log && (log.records as typeof recordsOf)(log, host);

  async function launch({ held, ...given }: Given, asker: Asker, out?: Outlet): Promise<LiveRun> {
    const vars = await asker.vars();
    if (signal?.aborted) throw shutdown();
    const id = recordId(given.run, asker);
    if (live.has(id)) {
      throw new SessionError(`Cannot run session "${given.session}": another run has it`, "busy", given.run);
    }
    const { owner } = asker;
    const lost = (run: string) => singleProcess && (run === given.run || host.isDead(run, asker));
    const record = records?.recorder(given.run, asker, out, (error) => {
      run.stop(error === undefined ? "lost" : "unrecorded", { leave: error === undefined });
      if (error !== undefined) report(onError, error, given.run);
    });
    const sink = record ?? out ?? nullSink;
    const told = { store: held?.store ?? store, limits, lease, lost, onError, owner, vars, ...given };
    const started = start(told, held?.to(sink) ?? sink);
    const over = Promise.all([started.result, record?.over]).then(() => void live.delete(id)); // neither rejects
    const run: LiveRun = { ...started, begun: begun(started, record), over };
    live.set(id, run);
    try {
      await run.begun;
      return run;
    } catch (error) {
      await over;
      throw error;
    }
  }

  return { ...host, launch, records };
}

/** Settles when a run has its session, and its first events are on record. */
async function begun({ opened }: Started, record: Recorder | undefined): Promise<void> {
  const { after } = await opened;
  if (await record?.begin(after) === false) {
    throw new RecordError("Cannot run this: what happens in it could not be written down", "unrecorded");
  }
}
