/**
 * The control of a run: its signal, its deadline, one listener for all work that stops with it, and the work in progress, which its end unwinds.
 *
 * @module
 */
import { type Cancellation, cancellationOf, startTimer } from "./lib/cancellation.ts";
import type { AssistantMessage } from "../protocol/message.ts";

/** The options of a stop. */
export interface StopOptions {
  /** Restores the transcript to the start of the run, and drops messages that wait for the run. Default: false. */
  readonly rollback?: boolean;
  /** Leaves the session as it is stored, for another process that continues the run. Default: false. */
  readonly leave?: boolean;
  /** Restores the session as it was before the start, if a run had it and is not being closed. Default: false. */
  readonly undo?: boolean;
  /** Leaves the run to another process. Resolves when its state is saved for that. Default: the run ends here. */
  readonly handOver?: Promise<void> | undefined;
}

/** The options of all stops so far. */
type Stops = Required<Omit<StopOptions, "handOver">> & Pick<StopOptions, "handOver">;

/** Stops a run. It exists before the run has its session. */
export class RunControl implements Cancellation {
  readonly #controller = new AbortController();
  /** Aborts when the run should stop. */
  readonly signal: AbortSignal = this.#controller.signal;
  readonly #listeners = new Set<() => void>();
  #deadline: ReturnType<typeof setTimeout> | undefined;
  #releasing: ReturnType<typeof setTimeout> | undefined;
  /** Removes the listener of the signal that the run follows. */
  #unfollow: (() => void) | undefined;
  #aborted = false;
  #closed = false;
  readonly #stop: { -readonly [K in keyof Stops]: Stops[K] } = {
    rollback: false,
    leave: false,
    undo: false,
    handOver: undefined,
  };

  /** True once the run should stop. A field, since reading `signal.aborted` for each call is slow. */
  get aborted(): boolean {
    return this.#aborted;
  }
  /** The reason: an `AbortError` whose message is the text given to `abort()`. */
  get reason(): unknown {
    return this.signal.reason;
  }
  /** The options of all stops so far. `handOver` is that of the stop that counts. */
  get stop(): Stops {
    return this.#stop;
  }

  /** Calls `listener` on abort. Returns a function that removes it. */
  onAbort(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Returns the cancellation of a signal: the run itself for its own signal, which needs no further listener. */
  of(signal: AbortSignal): Cancellation {
    return signal === this.signal ? this : cancellationOf(signal);
  }

  /** Stops the run when `signal` aborts. */
  follow(signal: AbortSignal): void {
    const abort = () => this.abort("signal");
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    this.#unfollow = () => signal.removeEventListener("abort", abort);
  }

  /** Stops the run. The first reason counts. */
  abort(reason: string, { rollback = false, leave = false, undo = false, handOver }: StopOptions = {}): void {
    this.#stop.rollback ||= rollback;
    this.#stop.leave ||= leave;
    this.#stop.undo ||= undo;
    if (this.#aborted || this.#closed) return;
    this.#aborted = true;
    this.#stop.handOver = handOver;
    this.#controller.abort(new DOMException(reason, "AbortError"));
    for (const listener of this.#listeners) listener();
  }

  /** Has the transcript restored to the start of the run when the run is stopped. */
  rollBack(): void {
    this.#stop.rollback = true;
  }

  /** Starts the wall-time limit, again if it has changed. */
  setDeadline(ms: number): void {
    clearTimeout(this.#deadline);
    this.#deadline = startTimer(() => this.abort("deadline"), ms);
  }

  /** Calls `release` after `ms` milliseconds, unless the run is over before. */
  releaseAfter(ms: number, release: () => void): void {
    clearTimeout(this.#releasing);
    this.#releasing = startTimer(release, ms);
  }

  /** Ends the control. Later calls of `abort()` do nothing. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#deadline);
    clearTimeout(this.#releasing);
    this.#listeners.clear();
    this.#unfollow?.();
  }
}

/** The work in progress of a run: its end unwinds the work, keeps the unfinished answer, and cleans up once. */
export class OpenWork {
  #unwinders: Set<() => () => void> | undefined;
  #unwound: Promise<void> | undefined;
  /** Resolves once the results of unwound calls are emitted, if they wait for a save. */
  announced: Promise<void> | undefined;
  #partial: (() => AssistantMessage) | undefined;
  #cleanup: Promise<void> | undefined;

  /** The unfinished answer that clients have seen, if the model is streaming one. */
  get partial(): AssistantMessage | undefined {
    return this.#partial?.();
  }

  /** Sets the source of the unfinished answer, or clears it. */
  streamPartial(partial: (() => AssistantMessage) | undefined): void {
    this.#partial = partial;
  }

  /** Registers a function that unwinds work when the run ends without it, and returns one that emits the results. Returns a function that removes it. */
  onUnwind(unwind: () => () => void): () => void {
    const unwinders = this.#unwinders ??= new Set();
    unwinders.add(unwind);
    return () => unwinders.delete(unwind);
  }

  /** Returns the functions that unwind the work, and removes them. */
  takeUnwinders(): readonly (() => () => void)[] {
    const unwinders = [...this.#unwinders ?? []];
    this.#unwinders?.clear();
    return unwinders;
  }

  /** Unwinds the work, once. */
  unwind(unwind: () => Promise<void>): Promise<void> {
    return this.#unwound ??= unwind();
  }

  /** Runs the cleanup, once. */
  cleanUp(clean: () => Promise<void>): Promise<void> {
    return this.#cleanup ??= clean();
  }
}
