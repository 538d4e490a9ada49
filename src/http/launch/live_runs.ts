/**
 * The runs that this process executes.
 *
 * @module
 */
import { outage } from "../../core/persistence/retries.ts";
import { SessionError } from "../../core/persistence/session_error.ts";
import type { RunSnapshot } from "../../core/run/position.ts";
import { nullSink, type Started } from "../../core/start/options.ts";
import { ownedKey, ownedSessions } from "../../session/owned_store.ts";
import { isRunning } from "../../session/record/run_state.ts";
import type { recordsOf } from "../../session/record/records_of.ts";
import type { Recorder } from "../../session/record/recorder.ts";
import type { LaunchInput, LiveRun, Owned, Requester, RunHost } from "../../session/record/run_host.ts";
import type { Records } from "../../session/record/records.ts";
import type { ServedAgent } from "../options.ts";
import type { ServerOptions } from "../server_options.ts";
import { type EndReports, endReports } from "./end_reports.ts";
import { checkClientTools } from "../admit/client_tools.ts";
import { checkedId } from "../parse/route.ts";
import { reportError, shuttingDown } from "../respond/error_response.ts";
import type { EventOutput } from "../respond/response_format.ts";

/** The runs that this process executes, and the records of all runs. */
export interface LiveRuns extends RunHost {
  /** Begins or resumes a run that writes its events to `out`. */
  launch(input: LaunchInput, requester: Requester, out?: EventOutput): Promise<LiveRun>;
  /** Resolves when each run has ended or paused, and was reported, or was handed over to another process. */
  settled(): Promise<void>;
  /** Lets `settled()` and the platform wait for work that follows a run. `work` never rejects. */
  track(work: Promise<void>, requester: Requester): void;
  /** The records of runs, if the server has a log. */
  readonly records: Records | undefined;
  /** The reports of the ends of runs, if the server has the `onEnd` option. */
  readonly reports: EndReports | undefined;
}

/** Keeps the runs of an agent. */
export function liveRuns(
  agent: ServedAgent<never>,
  options: ServerOptions,
): LiveRuns {
  const { sessions, log, limits, lease, grace, singleProcess, signal, onError } = options;
  /** The runs, by owner and id. */
  const live = new Map<string, LiveRun>();
  /** The time at which a shutdown waits no longer, in milliseconds since 1970. */
  let leavesAt = Infinity;
  signal?.addEventListener("abort", () => {
    leavesAt = Date.now() + grace;
    for (const run of live.values()) run.handOver(grace);
  });

  /** Returns the store as the requester sees it. */
  const storeOf = ({ owner }: Owned) => owner === undefined || !sessions ? sessions : ownedSessions(sessions, owner);

  /** The work that follows runs, such as the reports of their ends. It never rejects. */
  const tracked = new Set<Promise<void>>();

  function track(work: Promise<void>, requester: Requester): void {
    const done = work.then(() => void tracked.delete(done));
    tracked.add(done);
    requester.outlive(done);
  }

  async function settled(): Promise<void> {
    await Promise.all(Array.from(live.values(), ({ over }) => over));
    while (tracked.size > 0) await Promise.all(tracked); // a stop may begin a run, whose end is reported
  }

  const host: RunHost = {
    agent,
    onError,
    hasStore: sessions !== undefined,
    lease,
    patience: () => Date.now() < leavesAt ? outage : 0,
    signal,
    async load(id, requester) {
      if (id === "") return undefined; // no session has this id
      checkedId(id, ownedKey(requester.owner, id));
      return await storeOf(requester)?.load(id);
    },
    save: async (session, requester) => await storeOf(requester)?.save(session),
    get: (run, { owner }) => live.get(ownedKey(owner, run)),
    isDead: (run, { owner }) => singleProcess && !live.has(ownedKey(owner, run)),
    launch,
  };
  // a log brings the code that a server needs for it; its type is `recordsOf` of the same package
  const records = log && (log.records as typeof recordsOf)(log, host);

  const reports = endReports(options, host);

  /** Returns the options with which the agent starts a run. They stay as long as the run, so they must not keep its request. */
  function startOptionsOf({ held, taken, ...input }: LaunchInput, { owner, vars }: Requester) {
    const { run: own } = input;
    /** With a log, the records end a lost run before another one begins: otherwise its end would not be logged. */
    const lost = (run: string, until = Infinity) => {
      const isOwn = run === own;
      if (singleProcess && (isOwn || host.isDead(run, { owner }))) return true;
      return (isOwn && until === taken) || ((isOwn || !records) && Date.now() >= until);
    };
    const reconcile = records && ((run: RunSnapshot) => records.reconcile(run, { owner }));
    const store = held?.store ?? storeOf({ owner });
    return { store, limits, lease, lost, onError, owner, vars, reconcile, check: checkClientTools, ...input };
  }

  /** Removes a run once it is over and its events are logged. It keeps no more of the launch than it needs, since it stays as long as the run. */
  function whenOver({ result }: Started, key: string, record: Recorder | undefined): Promise<void> {
    return result.then(async () => { // neither rejects
      await record?.over;
      live.delete(key);
    });
  }

  async function launch(input: LaunchInput, requester: Requester, out?: EventOutput): Promise<LiveRun> {
    const { owner } = requester;
    const { run: id, session, held } = input;
    const report = reports && await reports.expect({ run: id, session, ...(owner !== undefined && { owner }) });
    if (signal?.aborted && input.closing !== "stop") throw shuttingDown(); // a run that was stopped ends here
    const key = ownedKey(owner, id);
    if (live.has(key)) {
      throw new SessionError(`Cannot run session "${session}": another run has it`, "busy", id);
    }
    const isNew = input.prompt !== undefined || input.messages !== undefined;
    let isBegun = false;
    let lostTo: "process" | "log" | undefined;
    /** Returns true if another process continues the run, or will. */
    const continues = async () => lostTo === "process" || isRunning(await host.load(session, { owner }), id);
    const record = records?.recorder(id, requester, out, (error) => {
      lostTo = error === undefined ? "process" : "log";
      if (lostTo === "process") return run.stop("lost", { leave: true });
      run.stop("unrecorded", { rollback: isNew && !isBegun, undo: !isBegun }); // its client may send the request again
      reportError(onError, error, id);
    });
    const given = record ?? out ?? nullSink;
    const sink = report?.watch(given) ?? given;
    const started = agent.start(startOptionsOf(input, requester), held?.to(sink) ?? sink);
    const begun = started.opened.then(({ after }) => record?.begin(after));
    const run: LiveRun = Object.assign(started, { begun, over: whenOver(started, key, record) });
    live.set(key, run);
    try {
      await run.begun;
      isBegun = true;
      if (report) track(run.over.then(() => report.deliver(continues, lostTo !== "log")), requester);
      return run;
    } catch (error) {
      await run.over;
      const isGone = isNew && error instanceof SessionError && error.run !== id;
      await report?.abandon({ isGone, pausedAt: input.pausedAt });
      throw error;
    }
  }

  return { ...host, launch, settled, track, records, reports };
}
