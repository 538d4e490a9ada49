/**
 * The records of runs, whichever process executes them: records are written, followed, and completed if the process of a run has died.
 *
 * @module
 */
import { anySignal } from "../../core/lib/cancellation.ts";
import { withRetries } from "../../core/store.ts";
import { isPaused, SessionError, type SessionHead } from "../../core/session.ts";
import { noUsage } from "../../protocol/message.ts";
import { lineOf } from "../../stream/sse.ts";
import type { Log, LogPage, RecordsOf } from "../log.ts";
import { idempotencyKeys } from "./idempotency_keys.ts";
import { followWithLeaseCheck } from "./lease_check.ts";
import { lastEvent, readableLog, readEnd, recordKey } from "./logged_pages.ts";
import { reconcile } from "./reconcile.ts";
import { RecordError } from "./record_error.ts";
import { recorder } from "./recorder.ts";
import { sendToRemoteRun } from "./remote_messages.ts";
import type { Owned, Requester, RunHost, RunPosition } from "./run_host.ts";
import type { Records } from "./records.ts";
import { runSessions, type SessionLookup } from "./run_sessions.ts";
import { isRunning, knownEnd, lastEventNumber, leaseEnd, numberPause, runOf } from "./run_state.ts";

/** The part of a server that uses a log: it keeps the record of each run, lets clients follow it, and takes over runs whose processes have died. */
export const records: RecordsOf = recordsOf;

/** Keeps the records of the runs of `host` in a log. */
export function recordsOf(given: Log, host: RunHost): Records {
  const log = readableLog(given);
  const endOf = (run: string, requester: Owned) => readEnd(log, recordKey(run, requester));
  const load = async (id: string | undefined, requester: Requester) =>
    id === undefined ? undefined : await host.head(id, requester);
  const sessions = runSessions(log, host);

  /** Whether the process of the run that has the session is dead. */
  function isLost(session: SessionHead, requester: Requester): boolean {
    const run = runOf(session);
    if (run === undefined || !isRunning(session) || host.get(run, requester)) return false;
    return Date.now() >= leaseEnd(session) || host.isDead(run, requester);
  }

  /**
   * Completes a record that has no end, of a run that this process does not execute. A lost run is resumed. If the session knows the end of the run, its last
   * event is logged.
   */
  async function complete(run: string, lookup: SessionLookup, requester: Requester): Promise<void> {
    const page = host.get(run, requester) ? undefined : await endOf(run, requester);
    if (!page || page.ended) return;
    const id = await lookup();
    if (host.hasStore ? id === undefined : !host.isDead(run, requester)) return; // nothing tells how the run ended
    const session = await load(id, requester);
    if (!session || !isRunning(session, run)) {
      if (session && runOf(session) === run && !await renumberPause(session, page.last, requester)) return;
      const end = knownEnd(session, run) ?? { type: "run.aborted", reason: "lost", text: "", usage: noUsage };
      const lines = [lineOf(end)];
      await log.append(recordKey(run, requester), { after: page.last, lines, ended: true });
    } else if (isLost(session, requester)) {
      await host.launch({ run, session: session.id, answers: [] }, requester).catch(unlessFaster);
    }
  }

  /**
   * Gives a pause the number after event `last`, if events before the pause could not be logged: its answers name the number in the record. Returns false if
   * another process has changed the record or the session meanwhile.
   */
  async function renumberPause(session: SessionHead, last: number, requester: Requester): Promise<boolean> {
    const run = runOf(session);
    if (run === undefined || last + 1 >= lastEventNumber(session)) return true;
    const end = await endOf(run, requester); // all events of a pause that is stored are logged, or never will be
    if (end?.last !== last) return false;
    const isUnchanged = ({ version }: SessionHead) => version === session.version;
    const numbered = (head: SessionHead) => isUnchanged(head) ? numberPause(head, last + 1) : undefined;
    return await host.changeHead(session.id, requester, numbered) === true;
  }

  /** Whether a paused run was resumed and has logged nothing yet. Its record is opened again, so that it can be followed. */
  async function isResuming(run: string, lookup: SessionLookup, last: number, requester: Requester): Promise<boolean> {
    return isRunning(await load(await lookup(), requester), run) &&
      await log.append(recordKey(run, requester), { after: last, lines: [], ended: false });
  }

  /** Takes over the run that has a session, and ends it. */
  const closeNow = (run: string, session: string, closing: string, requester: Requester, rollback = false) =>
    host.launch({ run, session, answers: [], closing, rollback, busy: "replace" }, requester);

  const close: Records["close"] = (...of) => closeNow(...of).catch(unlessFaster);

  /** Yields the events after a position, and those that follow. */
  async function* pages(
    { run, after }: RunPosition,
    lookup: SessionLookup,
    requester: Requester,
    signal: AbortSignal,
  ): AsyncGenerator<LogPage> {
    const over = new AbortController();
    try {
      yield* followWithLeaseCheck(log, recordKey(run, requester), {
        after,
        signal: anySignal([signal, over.signal, ...host.signal ? [host.signal] : []]),
        lease: host.lease,
        check: () => complete(run, lookup, requester),
      });
    } finally {
      over.abort(); // removes the listeners of `anySignal()` where `AbortSignal.any()` is missing
    }
  }

  return {
    recorder: (run, requester, out, onLost) =>
      recorder({ log, key: recordKey(run, requester), owner: requester.owner, out, patience: host.patience, onLost }),
    close,
    async follow(position, requester, signal) {
      const { run, after } = position;
      const end = isRunId(run) ? await endOf(run, requester) : undefined;
      if (!end) throw new RecordError(`Cannot follow run "${run}": there is none`, "unknown");
      const named = `run "${run}" after event ${after}`;
      if (after > end.last) throw new RecordError(`Cannot follow ${named}: the last is ${end.last}`, "ahead");
      const lookup = sessions.lookup(position, requester);
      const ended = end.ended && (after < end.last || !await isResuming(run, lookup, end.last, requester));
      if (ended && after === end.last) return undefined;
      if (!ended) await complete(run, lookup, requester);
      const rest = pages(position, lookup, requester, signal); // followers share what they read
      if (after === end.last) return rest;
      const first = await rest.next();
      if (first.done && (signal.aborted || host.signal?.aborted)) return rest;
      if (first.done) throw new RecordError(`Cannot follow ${named}: the next events have been deleted`, "forgotten");
      return beginningWith(first.value, rest);
    },
    async stop(address, requester, rollback = false) {
      const { run } = address;
      const page = isRunId(run) ? await endOf(run, requester) : undefined;
      if (!page) return false;
      const id = await sessions.reach(address, page, requester);
      const busy = `Cannot stop run "${run}": another process changed it during each attempt`;
      await withRetries(async () => {
        const session = await load(id, requester);
        if (!session || runOf(session) !== run) return await complete(run, () => Promise.resolve(id), requester);
        await closeNow(run, session.id, "stop", requester, rollback); // rejects if the run's own process saved it at this moment
      }).catch((error) => {
        throw error instanceof SessionError && error.code === "busy" ? new SessionError(busy, "busy", run) : error;
      });
      return true;
    },
    async send(address, message, requester) {
      const { run } = address;
      const page = isRunId(run) ? await endOf(run, requester) : undefined;
      const session = page && await sessions.reach(address, page, requester);
      return session === undefined ? undefined : await sendToRemoteRun({ run, session }, message, requester, host);
    },
    async releaseIfLost(session, requester) {
      const run = runOf(session);
      if (run === undefined || !isLost(session, requester)) return;
      await (await close(run, session.id, "lost", requester))?.untilOver();
    },
    async catchUp(session, requester) {
      const run = runOf(session);
      if (run === undefined) return undefined;
      if (isPaused(session)) {
        const live = host.get(run, requester);
        const after = await live?.untilBegun() ?? Infinity;
        if (after < lastEventNumber(session)) await live?.untilOver(); // it has just paused
        await complete(run, () => Promise.resolve(session.id), requester);
      }
      return (await endOf(run, requester))?.last;
    },
    reconcile: (run, requester) => reconcile(log, recordKey(run.id, requester), run),
    lastEvent: async (run, requester) => await lastEvent(log, recordKey(run, requester), await endOf(run, requester)),
    async untilOver(run, requester, signal) {
      const page = await endOf(run, requester);
      if (!page || page.ended) return false;
      const expired = new AbortController();
      const timer = setTimeout(() => expired.abort(), host.lease);
      try {
        for await (const _ of log.tail(recordKey(run, requester), page.last, anySignal([signal, expired.signal])));
        return true;
      } finally {
        clearTimeout(timer);
        expired.abort(); // removes the listeners of `anySignal()` where `AbortSignal.any()` is missing
      }
    },
    ...idempotencyKeys(log, host),
  };
}

async function* beginningWith<T>(first: T, rest: AsyncIterable<T>): AsyncGenerator<T> {
  yield first;
  yield* rest;
}

/** Returns nothing for the error of a run that another process has taken over before. Throws any other error. */
function unlessFaster(error: unknown): undefined {
  if (!(error instanceof SessionError || error instanceof RecordError)) throw error;
}

/** Whether a run can have this id. Other keys of the log contain other characters. */
function isRunId(run: string): boolean {
  return /^[\w-]+$/.test(run);
}
