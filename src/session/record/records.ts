/**
 * The records of runs, as servers use them, and their errors.
 *
 * @module
 */
import type { RunSnapshot, Stop } from "../../core/position.ts";
import { isPaused, type Mail, type SessionHead } from "../../core/session.ts";
import { brand } from "../../protocol/brand.ts";
import type { Event } from "../../protocol/event.ts";
import type { Lines, LogPage } from "../log.ts";
import type { IdempotencyKeys } from "./idempotency_keys.ts";
import type { Loss, Recorder } from "./recorder.ts";
import type { EventCursor, LiveRun, Owned, Requester, RunAddress, RunHost } from "./run_host.ts";
import { lastEventNumber } from "./run_state.ts";
import type { Sink } from "../../stream/channel.ts";

// Errors of the records of runs.

/**
 * The reason of a `RecordError`.
 *
 * - `unknown`: there is no record of the run.
 * - `forgotten`: the next events have been deleted.
 * - `ahead`: the cursor is after the last event.
 * - `key-reused`: another request has the idempotency key.
 * - `repeated`: the same request is being handled, and its events cannot be joined.
 * - `unrecorded`: the events could not be logged.
 * - `unreachable`: another process may execute the run, and its session is not known.
 */
type RecordProblem =
  | "unknown"
  | "forgotten"
  | "ahead"
  | "key-reused"
  | "repeated"
  | "unrecorded"
  | "unreachable";

/** A request that the record of a run does not allow. Its message may be sent to the client. */
export class RecordError extends Error {
  /** The mark of the class, which its copies share. */
  static readonly "~brand": symbol = /* @__PURE__ */ brand(this, "RecordError");

  override readonly name = "RecordError";

  /** Takes the message and the reason. */
  constructor(message: string, readonly code: RecordProblem) {
    super(message);
  }
}

// The port of records: what a server asks of the logged events of runs.

/** The records of runs. For a requester, the records of other owners do not exist. */
export interface Records extends IdempotencyKeys {
  /** Logs the events of a run before `out` receives them. `onLost` is called if logging ends early. */
  recorder(run: string, requester: Requester, out: Sink<Lines>, onLost: (loss: Loss) => void): Recorder;
  /**
   * Returns the events after a cursor and those that follow, until the run ends or pauses; nothing if it has, and no event is left. Throws a `RecordError`
   * if there is no such event.
   */
  follow(
    cursor: EventCursor,
    requester: Requester,
    signal: AbortSignal,
  ): Promise<AsyncIterable<LogPage> | undefined>;
  /**
   * Stops a run that this process does not execute: it is executed elsewhere, is lost, or is paused. `rollback` restores the transcript to the start of the
   * run. Returns whether there is such a run. Throws a `RecordError` if the run is not reached.
   */
  stop(run: RunAddress, requester: Requester, rollback?: boolean): Promise<boolean>;
  /** Sends a message to a run that another process executes. Returns whether there was room for it; nothing if there is no such run. Throws as `stop()` does. */
  send(run: RunAddress, message: Mail, requester: Requester): Promise<boolean | undefined>;
  /** Takes over the run that has a session and ends it. Returns the run while it ends, or nothing if another process was faster. */
  close(
    run: string,
    session: string,
    stop: Stop,
    requester: Requester,
    rollback?: boolean,
  ): Promise<LiveRun | undefined>;
  /** Ends the run that has a session if its process has died, so that another run can have the session. */
  releaseIfLost(session: SessionHead, requester: Requester): Promise<void>;
  /** Completes the record of a paused run. Returns the number of the last logged event of the run that has the session. */
  catchUp(session: SessionHead, requester: Requester): Promise<number | undefined>;
  /** Returns the snapshot of a run, with the events and results that are logged and were not saved. */
  reconcile(run: RunSnapshot, requester: Owned): Promise<RunSnapshot>;
  /** Returns the last event of a run that has ended or paused; undefined if there is no such record. */
  lastEvent(run: string, requester: Owned): Promise<Event | undefined>;
  /**
   * Resolves when a run of another process has ended or paused, when a lease has passed, or when `signal` aborts. Returns false if there is no record that
   * would tell.
   */
  untilOver(run: string, requester: Requester, signal: AbortSignal): Promise<boolean>;
}

// Loading sessions whose pause has its final number.

/** The part of a server that loads sessions. */
export interface CaughtUpHost extends Pick<RunHost, "head"> {
  /** The records of runs, if the server has a log. */
  readonly records: Pick<Records, "catchUp"> | undefined;
}

/** Reads a session without its messages, and completes the record of its run before if the run is paused: the pause may receive a lower number then. */
export async function loadCaughtUp(
  host: CaughtUpHost,
  id: string,
  requester: Requester,
): Promise<SessionHead | undefined> {
  const session = await host.head(id, requester);
  if (!session || !isPaused(session) || !host.records) return session;
  const last = await host.records.catchUp(session, requester) ?? Infinity;
  return last < lastEventNumber(session) ? await host.head(id, requester) : session;
}
