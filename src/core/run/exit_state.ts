/**
 * The exit of a run: once set, only one of a higher rank replaces it.
 *
 * @module
 */
import { End, Pause } from "../hooks/interrupt.ts";
import { type Cancellation, reasonOf } from "../lib/cancellation.ts";
import { type Exit, exits } from "./position.ts";

/** The exit of a run, and the error that unwinds the run to it. */
export class ExitState {
  readonly #cancellation: Cancellation;
  #current: Exit | undefined;
  #interrupt: unknown;

  constructor(cancellation: Cancellation) {
    this.#cancellation = cancellation;
  }

  get current(): Exit | undefined {
    return this.#current;
  }
  /** The error that unwinds the run. */
  get interrupt(): unknown {
    return this.#interrupt;
  }
  /** True if the run pauses or ends before its prompt has an answer. */
  get isInterrupted(): boolean {
    return this.#current !== undefined && exits[this.#current.status].rank > exits.done.rank;
  }
  /** True if the run ends, and does not pause. */
  get isEnding(): boolean {
    return this.#current !== undefined && exits[this.#current.status].rank > exits.paused.rank;
  }

  /** Sets the exit, unless one of the same or a higher rank is set. `interrupt` unwinds the run. */
  offer(exit: Exit, interrupt: unknown): void {
    if (this.#current && exits[exit.status].rank <= exits[this.#current.status].rank) return;
    this.#current = exit;
    this.#interrupt = interrupt;
  }

  /** Sets the exit of an interrupt. Other errors set none: a hook may catch them. */
  offerInterrupt(error: unknown): void {
    if (error instanceof Pause) this.offer({ status: "paused", questions: error.questions }, error);
    if (!(error instanceof End)) return;
    const { as, reason, rollback, withhold } = error;
    const status = as === "done" ? "ended" : as === "limit" ? "limited" : as;
    this.offer({ status, reason, rollback, withhold, ...(as === "failed" && { error }) }, error);
  }

  /** Sets the exit of an aborted run. */
  settle(): void {
    const { aborted, reason } = this.#cancellation;
    if (!aborted) return;
    const why = reasonOf(reason);
    this.offer({ status: why === "deadline" || why === "recoveries" ? "deadline" : "aborted", reason: why }, reason);
  }

  /** Throws if the run has an exit or was aborted. */
  check(): void {
    this.settle();
    if (this.#current) throw this.#interrupt;
  }
}
