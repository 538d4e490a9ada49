/**
 * Recovery on a server: runs whose process died continue without a request.
 *
 * @module
 */
import type { LeaseIndex, Recover } from "../../core/store.ts";
import { SessionError, type SessionHead } from "../../core/session.ts";
import { idWithoutOwner } from "../owned_store.ts";
import { RecordError } from "../record/record_error.ts";
import type { Records } from "../record/records.ts";
import type { RecoveredRun, Requester, RunHost } from "../record/run_host.ts";
import { isRunning, leaseEnd, runOf } from "../record/run_state.ts";
import { leaseRecovery } from "./lease_recovery.ts";
import { redeliver, type StoredReports, type StoredRuns } from "./stored_reports.ts";

/** A server whose runs are recovered. */
export interface RecoveringServer extends StoredRuns, Pick<RunHost, "lease" | "signal" | "get" | "launch"> {
  /** True if no other process uses the store. */
  readonly singleProcess: boolean;
  /** The records of runs, if the server has a log. */
  readonly records: Records | undefined;
  /** The reports of the ends of runs, if the server has the `onEnd` option. */
  readonly reports: StoredReports | undefined;
  /** Returns the vars for a run. Default: none. */
  readonly recoveryVars?: ((run: RecoveredRun) => unknown) | undefined;
}

/** Returns the `recover()` of a server. The recovery that comes with a durable store. */
export function recoveryOf(store: LeaseIndex, server: RecoveringServer): Recover {
  const { signal, recoveryVars, reports } = server;

  /** Returns the session as its owner's requests know it; undefined if no run of this server can continue it. */
  function recoverable(session: SessionHead): RecoveredRun | undefined {
    const [run, id] = [runOf(session), idWithoutOwner(session)];
    if (run === undefined || id === undefined || !isRunning(session)) return undefined;
    const { owner } = session;
    return { run, session: id, ...(owner !== undefined && { owner }) };
  }

  async function resume(stored: SessionHead): Promise<{ readonly over: Promise<unknown> } | undefined> {
    if (stored.report && reports) return { over: redeliver(store, stored, reports, server) };
    const recovered = recoverable(stored);
    if (!recovered) return undefined;
    const { run, session, owner } = recovered;
    const after: Promise<unknown>[] = [];
    const outlive = (work: Promise<unknown>) => void after.push(work);
    const requester: Requester = { owner, vars: await recoveryVars?.(recovered), outlive };
    try {
      await server.launch({ run, session, answers: [], taken: leaseEnd(stored) }, requester);
      return { over: Promise.all(after) };
    } catch (error) {
      const isFaster = error instanceof SessionError || error instanceof RecordError;
      if (isFaster || signal?.aborted) return undefined; // another process has continued the run, or will
      throw error;
    }
  }

  return leaseRecovery(store, {
    ...server,
    resume,
    isLive(session) {
      const run = session.report ?? recoverable(session);
      const isReported = session.report && (!reports || reports.isPending(session.report));
      return !run || isReported || server.get(run.run, run) !== undefined;
    },
  });
}
