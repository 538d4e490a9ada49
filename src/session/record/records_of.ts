/**
 * The records of runs, whichever process executes them: records are written, followed, and completed if the process of a run has died.
 *
 * @module
 */
import { anySignal } from "../../core/lib/cancellation.ts";
import {
  type CallRecord,
  type Position,
  type ReviewedResult,
  type RunSnapshot,
  type Stop,
  stops,
} from "../../core/position.ts";
import { isPaused, type Mail, SessionError, type SessionHead } from "../../core/session.ts";
import { reviewForRemoteRun, reviewsInput } from "../../core/start.ts";
import { withRetries } from "../../core/store.ts";
import type { Event } from "../../protocol/event.ts";
import { type CallResult, noUsage } from "../../protocol/message.ts";
import type { Log, LogPage, RecordsOf } from "../log.ts";
import { idempotencyKeys, lastEvent, loggedPages, readableLog, readEnd, recordKey } from "./idempotency_keys.ts";
import { recorder } from "./recorder.ts";
import { RecordError, type Records } from "./records.ts";
import type { EventCursor, Owned, Requester, RunAddress, RunHost } from "./run_host.ts";
import { hasEnded, isRunning, knownEnd, lastEventNumber, leaseEnd, numberPause, runOf } from "./run_state.ts";
import { lineOf } from "../../stream/sse.ts";

// Following a log with a timer: if no event comes for the length of a lease, the process of the run may be dead.

/** Options of `followWithLeaseCheck()`. */
interface LeaseCheckOptions {
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
async function* followWithLeaseCheck(
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

// Reconciliation: the results that a log has and a store has not, because the process of the run died between the two writes.

/** A result, as clients have read it. */
type Finished = Extract<Event, { readonly type: "tool.finished" }>;

/** The text for the model in place of a result that has no parts in the log: clients did not receive them, or there are none. */
const lostText = "Its result is not available.";

/**
 * Returns a snapshot with the events that were logged after it was saved. A call whose result is among them has this result: clients have read it, and the
 * hooks have reviewed it. What else they did with the result in that turn is lost: texts for the model, a changed input, and the end of the run.
 */
async function reconcile(log: Log, key: string, run: RunSnapshot): Promise<RunSnapshot> {
  const { unsent, position, ...rest } = run;
  const logged = await resultsAfter(log, key, run.events);
  if (!logged) return run;
  const isUnsent = unsent && logged.last === run.events; // otherwise they were logged
  return {
    ...rest,
    ...(isUnsent && { unsent }),
    events: logged.last,
    position: fillResults(position, logged.results),
  };
}

/** Returns the results in the log after event `after`, and the number of the last event; undefined if there is no record. */
async function resultsAfter(log: Log, key: string, after: number) {
  const results: Finished[] = [];
  let end: number | undefined;
  for await (const { lines, last } of loggedPages(log, key, after)) {
    for (const line of lines) if (line.startsWith(`{"type":"tool.finished"`)) results.push(JSON.parse(line));
    end = last;
  }
  return end === undefined ? undefined : { results, last: end };
}

/** Gives the open calls of a position their logged results, in order: calls of one batch may have the same id. */
function fillResults(position: Position, results: Finished[]): Position {
  if (position.at !== "tools") return position;
  const calls = position.calls.map((record): CallRecord => {
    const { call, state } = record;
    const found = results.findIndex((event) => event.turn === position.turn && event.call === call.id);
    const [finished] = state === "done" || found < 0 ? [] : results.splice(found, 1);
    return finished ? { call, state: "done", result: reviewed(finished.result, record) } : record;
  });
  return { ...position, calls };
}

/** Returns a logged result as the run keeps it, with the note that a person changed the input. */
function reviewed(result: CallResult, record: CallRecord): ReviewedResult {
  const note = "note" in record ? record.note : undefined;
  const text = result.status === "ok" ? `It is done. ${lostText}` : lostText;
  return {
    ...result,
    ...(result.parts.length === 0 && { parts: [{ type: "text", text }] }),
    ...(note !== undefined && { context: [note] }),
  };
}

// Messages to a run that another process executes. They are posted to the run's session, where its own next save finds them.

/** Runs the `input` hooks for a message. Returns nothing if the run is over. */
async function reviewedFor(
  run: string,
  id: string,
  message: Mail,
  requester: Requester,
  host: RunHost,
): Promise<Mail | undefined> {
  if (message.type !== "message" || !reviewsInput(host.agent)) return message;
  const session = await host.load(id, requester);
  if (!session || !isRunning(session, run)) return undefined;
  return await reviewForRemoteRun(host.agent, { session, mail: message, vars: requester.vars, onError: host.onError });
}

/** Posts a message for a run. The `input` hooks review it before. Returns whether there was room for it; nothing if the run is over. */
async function sendToRemoteRun(
  { run, session: id }: { readonly run: string; readonly session: string },
  mail: Mail,
  requester: Requester,
  host: RunHost,
): Promise<boolean | undefined> {
  const message = await reviewedFor(run, id, mail, requester, host);
  return message && await host.post({ run, session: id }, message, requester);
}

// The sessions of runs, for requests that name only the run.

/** Returns the id of the session of a run, if it is known. */
type SessionLookup = () => Promise<string | undefined>;

/** Finds the sessions of runs. */
interface RunSessions {
  /**
   * Creates the lookup of a run: it returns the named session, or else the one that the events name: each start and each resumption names it. It reads each
   * event once. It finds none if sessions are not stored.
   */
  lookup(run: RunAddress, requester: Requester): SessionLookup;
  /**
   * Returns the id of the session through which a request reaches a run: the named one if it knows the run, or else the one that its events name. Returns
   * undefined if the run is over. `end` is the end of the record. Throws a `RecordError` if the run may continue and its session is not found.
   */
  reach(run: RunAddress, end: LogPage, requester: Requester): Promise<string | undefined>;
}

/** The most runs whose sessions are remembered. */
const mostFound = 1_000;

/** Finds the sessions of the runs in `log`. */
function runSessions(log: Log, host: RunHost): RunSessions {
  /** The sessions that were found, by record: followers of one run ask for the same. */
  const found = new Map<string, string>();

  function remember(key: string, session: string): string {
    const [oldest] = found.keys();
    if (oldest !== undefined && found.size >= mostFound) found.delete(oldest);
    found.set(key, session);
    return session;
  }

  const lookup: RunSessions["lookup"] = ({ run, session: id }, requester) => {
    const key = recordKey(run, requester);
    let after = 0;
    return async () => {
      if (id !== undefined || !host.hasStore) return id;
      const known = found.get(key);
      if (known !== undefined) return known;
      for await (const { first, lines } of loggedPages(log, key, after)) {
        const started = lines.find((line) => line.startsWith(`{"type":"run.started"`));
        if (started !== undefined) return remember(key, JSON.parse(started).session);
        after = first + lines.length - 1;
      }
      return undefined;
    };
  };

  /** Returns the id of a session if it knows the run. */
  async function ifKnown({ run, session: id }: RunAddress, requester: Requester): Promise<string | undefined> {
    const session = id === undefined ? undefined : await host.head(id, requester);
    return runOf(session) === run || hasEnded(session, run) ? id : undefined;
  }

  return {
    lookup,
    async reach(address, end, requester) {
      const { run } = address;
      const id = await ifKnown(address, requester) ?? await lookup({ run }, requester)();
      if (id !== undefined || (!host.hasStore && host.isDead(run, requester))) return id;
      const last = await lastEvent(log, recordKey(run, requester), end);
      if (last && last.type !== "run.paused") return undefined;
      const reason = host.hasStore
        ? "the events that name its session have been deleted; expected the session in ?session="
        : "sessions are not stored";
      throw new RecordError(`Cannot reach run "${run}" in another process: ${reason}`, "unreachable");
    },
  };
}

// The records that a server uses, on its log: they follow, stop and complete runs of any process.

/** The part of a server that uses a log: it keeps the record of each run, lets clients follow it, and takes over runs whose processes have died. */
export const records: RecordsOf = recordsOf;

/** Keeps the records of the runs of `host` in a log. */
export function recordsOf(uncheckedLog: Log, host: RunHost): Records {
  const log = readableLog(uncheckedLog);
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
      const end = knownEnd(session, run) ??
        { type: "run.aborted", reason: stops.lost.reason, text: "", usage: noUsage };
      const { owner } = requester;
      const pinned = end.type === "run.paused";
      const addition = { after: page.last, lines: [lineOf(end)], ended: true, owner, pinned };
      await log.append(recordKey(run, requester), addition);
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
      await log.append(recordKey(run, requester), { after: last, lines: [], ended: false, owner: requester.owner });
  }

  /** Takes over the run that has a session, and ends it. */
  const closeNow = (run: string, session: string, stop: Stop, requester: Requester, rollback = false) =>
    host.launch({ run, session, answers: [], stop, rollback, busy: "replace" }, requester);

  const close: Records["close"] = (...of) => closeNow(...of).catch(unlessFaster);

  /** Yields the events after a cursor, and those that follow. */
  async function* pages(
    { run, after }: EventCursor,
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
    async follow(cursor, requester, signal) {
      const { run, after } = cursor;
      const end = isRunId(run) ? await endOf(run, requester) : undefined;
      if (!end) throw new RecordError(`Cannot follow run "${run}": there is none`, "unknown");
      const named = `run "${run}" after event ${after}`;
      if (after > end.last) throw new RecordError(`Cannot follow ${named}: the last is ${end.last}`, "ahead");
      const lookup = sessions.lookup(cursor, requester);
      const ended = end.ended && (after < end.last || !await isResuming(run, lookup, end.last, requester));
      if (ended && after === end.last) return undefined;
      if (!ended) await complete(run, lookup, requester);
      const rest = pages(cursor, lookup, requester, signal); // followers share what they read
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
        await closeNow(run, session.id, stops.stop, requester, rollback); // rejects if the run's own process saved it at this moment
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
      await (await close(run, session.id, stops.lost, requester))?.untilOver();
    },
    async catchUp(session, requester) {
      const run = runOf(session);
      if (run === undefined) return undefined;
      if (isPaused(session)) {
        const live = host.get(run, requester);
        const after = await live?.untilReady() ?? Infinity;
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
