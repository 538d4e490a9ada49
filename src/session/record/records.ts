/**
 * The records of runs, as servers use them.
 *
 * @module
 */
import type { Mail, SessionHead } from "../../core/session.ts";
import type { RunSnapshot } from "../../core/position.ts";
import type { Event } from "../../protocol/event.ts";
import type { Sink } from "../../stream/channel.ts";
import type { Lines, LogPage } from "../log.ts";
import type { IdempotencyKeys } from "./idempotency_keys.ts";
import type { Recorder } from "./recorder.ts";
import type { LiveRun, Owned, Requester, RunAddress, RunPosition } from "./run_host.ts";

/** The records of runs. For a requester, the records of other owners do not exist. */
export interface Records extends IdempotencyKeys {
  /** Logs the events of a run before `out` receives them. `onLost` is called if logging ends early. */
  recorder(
    run: string,
    requester: Requester,
    out: Sink<Lines> | undefined,
    onLost: (error?: unknown) => void,
  ): Recorder;
  /**
   * Returns the events after a position and those that follow, until the run ends or pauses; nothing if it has, and no event is left. Throws a `RecordError`
   * if there is no such position.
   */
  follow(
    position: RunPosition,
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
    reason: string,
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
