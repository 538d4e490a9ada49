/**
 * A run as the writer of its session sees it.
 *
 * @module
 */
import { reasonOf } from "../../lib/cancellation.ts";
import type { EngineRun } from "../../run/run.ts";
import { restoredSession, savedSession } from "../saved_session.ts";
import type { Mail, Unsaved } from "../session.ts";

/** The state that the writer of a run reads, and what it tells the run. */
export class WriterRun {
  readonly #run: EngineRun;

  constructor(run: EngineRun) {
    this.#run = run;
  }

  /** The session's id. */
  get session(): string {
    return this.#run.session;
  }
  /** The run's id. */
  get id(): string {
    return this.#run.id;
  }
  /** The stored version when the run claimed its session. 0: none was stored. */
  get version(): number {
    return this.#run.claimed.version;
  }
  /** The number of stored messages from other processes that the run received then. */
  get mail(): number {
    return this.#run.claimed.mail.length;
  }
  /** True if another process continues the run, so nothing more is saved. */
  get leave(): boolean {
    return this.#run.control.stop.leave;
  }
  /** The reason why the run is being stopped, if it is. */
  get closing(): string | undefined {
    const { control, claimed, exit } = this.#run;
    const stops = control.aborted && !control.stop.handOver && !restoredSession(this.#run);
    return stops && exit.current?.status !== "failed" ? reasonOf(control.reason) : claimed.closing;
  }
  /** True if the transcript is restored to the start of the run then. */
  get rollback(): boolean {
    return this.#run.control.stop.rollback;
  }
  /** True if the transcript was restored to the start of the run, which keeps no message. */
  get rolledBack(): boolean {
    return this.#run.loop.transcript.rolledBack;
  }

  /** Returns the session with the run as it is now. */
  read(): Unsaved {
    return savedSession(this.#run);
  }
  /** Aborts the run. */
  abort(reason: string): void {
    this.#run.control.abort(reason);
  }
  /** Calls `listener` when the run is stopped. */
  onStop(listener: () => void): void {
    this.#run.control.onAbort(listener);
  }
  /** Adds messages that other processes sent to the run. */
  receive(mail: readonly Mail[]): void {
    this.#run.arrivals.receive(mail);
  }
  /** Reports an error to the operator. */
  report(error: unknown): void {
    this.#run.events.report(error);
  }
  /** Resolves once all events so far are logged, to false if they never will be. */
  logged(): Promise<boolean> {
    return this.#run.sink.settled?.() ?? Promise.resolve(true);
  }
  /** Stops logging events: another process logs them. */
  stopLogging(): void {
    this.#run.sink.yield?.();
  }
}
