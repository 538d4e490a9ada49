/**
 * Recovery on a server: runs whose process died continue without a request.
 *
 * @module
 */
import type { Recover } from "../../core/persistence/recovery.ts";
import { SessionError } from "../../core/persistence/session_error.ts";
import type { Session } from "../../core/persistence/session.ts";
import { idWithoutOwner } from "../../session/owned_store.ts";
import { RecordError } from "../../session/record/record_error.ts";
import type { LiveRun, Requester } from "../../session/record/run_host.ts";
import { isRunning, leaseEnd, runOf } from "../../session/record/run_state.ts";
import type { RecoveredRun, ServerOptions } from "../options.ts";
import { reportError } from "../respond/error_response.ts";
import type { LiveRuns } from "./live_runs.ts";

/** Returns the `recover()` of a server. */
export function recoveryOf(runs: LiveRuns, options: ServerOptions): Recover {
  const { store, lease, singleProcess, signal, vars, recoveryVars, onError } = options;
  const none = { runs: [], over: Promise.resolve() };

  /** Returns the session as its owner's requests know it; undefined if no run of this server can continue it. */
  function recoverable(session: Session): RecoveredRun | undefined {
    const [run, id] = [runOf(session), idWithoutOwner(session)];
    if (run === undefined || id === undefined || !isRunning(session)) return undefined;
    const { owner } = session;
    return { run, session: id, ...(owner !== undefined && { owner }) };
  }

  const isLiveRun = ({ run, owner }: RecoveredRun) =>
    runs.get(run, { owner, vars: undefined, outlive() {} }) !== undefined;

  async function resume(stored: Session): Promise<Pick<LiveRun, "over"> | undefined> {
    if (stored.report) return { over: runs.reports?.redeliver(stored, runs) ?? Promise.resolve() };
    const recovered = recoverable(stored);
    if (!recovered || signal?.aborted) return undefined;
    const { run, session, owner } = recovered;
    const after: Promise<unknown>[] = [];
    const outlive = (work: Promise<unknown>) => void after.push(work);
    const requester: Requester = { owner, vars: await recoveryVars?.(recovered), outlive };
    try {
      const last = await runs.records?.catchUp({ ...stored, id: session }, requester);
      const input = { run, session, answers: [], taken: leaseEnd(stored), ...(last !== undefined && { after: last }) };
      const { over } = await runs.launch(input, requester);
      return { over: Promise.all([over, ...after]).then(() => {}) };
    } catch (error) {
      if (error instanceof SessionError || error instanceof RecordError) return undefined; // another process was faster
      throw error;
    }
  }

  const recover = store?.recovery(store, {
    lease,
    singleProcess,
    isLive(session) {
      if (session.report) return !runs.reports || runs.reports.isPending(session) || isLiveRun(session.report);
      const recovered = recoverable(session);
      return !recovered || isLiveRun(recovered);
    },
    resume,
    report: (error) => void reportError(onError, error),
  });

  return async (given) => {
    if (vars && !recoveryVars) {
      throw new TypeError("Cannot recover runs: their vars are made from requests; expected the option recoveryVars");
    }
    return !recover || signal?.aborted ? none : await recover(given);
  };
}
