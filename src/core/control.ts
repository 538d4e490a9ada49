/**
 * The control of a run: its signal, its deadline, one listener for all work that stops with it, and the work in progress, which its end unwinds.
 *
 * @module
 */
import { type Cancellation, cancellationOf, startTimer } from "./lib/cancellation.ts";
import { type Stop, stops } from "./position.ts";
import type { AssistantMessage } from "../protocol/message.ts";

/** The options of a stop. */
export interface StopOptions {
  /** Restores the transcript to the start of the run, and drops messages that wait for the run. Default: false. */
  readonly rollback?: boolean;
}

/** The options of a stop of the engine or of a server. */
export interface AbortOptions extends StopOptions {
  /** Resolves when the state of the run is saved for the process that continues it. Default: there is nothing to wait for. */
  readonly handedOver?: Promise<void> | undefined;
}

/** The effects of stops on the session of a run. */
export interface StopEffects {
  /** True if the transcript is restored to the start of the run. */
  readonly rollback: boolean;
  /** False if the session stays as it is stored. */
  readonly saves: boolean;
}

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
  #stop: Stop | undefined;
  #handedOver: Promise<void> | undefined;
  readonly #effects = { rollback: false, saves: true };
  #closed = false;

  /** True once the run should stop. A field decides, since reading `signal.aborted` for each call is slow. */
  get aborted(): boolean {
    return this.#stop !== undefined;
  }
  /** The reason: an `AbortError` whose message is the text given to `abort()`. */
  get reason(): unknown {
    return this.signal.reason;
  }
  /** The first stop, which counts. */
  get stop(): Stop | undefined {
    return this.#stop;
  }
  /** Resolves when the state of a run that is handed over is saved. */
  get handedOver(): Promise<void> | undefined {
    return this.#handedOver;
  }
  /** The effects of all stops so far. */
  get effects(): StopEffects {
    return this.#effects;
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
    const abort = () => this.abort(stops.signal);
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    this.#unfollow = () => signal.removeEventListener("abort", abort);
  }

  /** Stops the run. The first stop counts. */
  abort(stop: Stop, { rollback = false, handedOver }: AbortOptions = {}): void {
    this.#effects.rollback ||= rollback;
    this.#effects.saves &&= stop.saves;
    if (this.#stop || this.#closed) return;
    this.#stop = stop;
    this.#handedOver = handedOver;
    this.#controller.abort(new DOMException(stop.reason, "AbortError"));
    for (const listener of this.#listeners) listener();
  }

  /** Has the transcript restored to the start of the run when the run is stopped. */
  rollBack(): void {
    this.#effects.rollback = true;
  }

  /** Starts the wall-time limit, again if it has changed. */
  setDeadline(ms: number): void {
    clearTimeout(this.#deadline);
    this.#deadline = startTimer(() => this.abort(stops.deadline), ms);
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
  resultsEmitted: Promise<void> | undefined;
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
