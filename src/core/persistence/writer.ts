/**
 * The port of writers: how a run saves its session.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import type { RunResult } from "../hooks/points/run.ts";
import type { Position } from "../run/position.ts";
import type { Unsaved } from "./session.ts";

/** The options of a writer. */
export interface WriterOptions {
  /** True to save the run while it runs. False to save only a pause: the run has no named session. */
  readonly always: boolean;
  /** Milliseconds for which a save claims the session. */
  readonly lease: number;
}

/** Writes the session of one run. One writer has a session at a time. The optional functions belong to stores that outlive the process. */
export interface SessionWriter {
  /** Saves the claim of the session. Resolves to false if another process has it. */
  claim(): Promise<boolean>;
  /**
   * Saves the run at a position. Aborts the run if another process has the session. A checkpoint that is not urgent may wait, and is left out if another
   * save follows. Returns no promise if nothing is to be saved.
   */
  checkpoint(position: Position, urgent: boolean): Promise<void> | undefined;
  /** Saves the run at once, if it is saved while it runs. */
  saveNow?(): Promise<void> | undefined;
  /** Saves the run as it is now: later changes are not saved until that is done. Returns no promise if nothing is to be saved. */
  saveFrozen?(): Promise<void> | undefined;
  /** Saves the session for the last time: with the paused run, or with the run's last event. Resolves to false if another process has it. */
  end(last: Event | undefined): Promise<boolean>;
  /** Prepares a run whose process died or shut down, before its hooks begin. Resolves to its result if it ends or is left before. */
  takeOver?(): Promise<RunResult | undefined>;
  /** Gives the run to another process, at the next safe place or after `grace` milliseconds. */
  handOver?(grace: number): void;
  /** Stops renewing the claim. */
  close?(): void;
}

/** Returns the session that a save at the end of a run stores: without the run, and with its last event. */
export function endedSession({ run, ...session }: Unsaved, event: Event): Unsaved {
  return run ? { ...session, last: { run: run.id, event, before: run.before } } : session;
}
