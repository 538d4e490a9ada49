/**
 * Cancellation: timers, delays, and the one place where the engine stops waiting for work that ignores its signal.
 *
 * @module
 */

// Signals that follow several others.

/**
 * Returns a signal that aborts with the first of `signals`, and with its reason. It is `AbortSignal.any()`, and takes its place on runtimes that lack it, such as
 * the Edge runtime.
 *
 * ```ts
 * import { anySignal } from "@jizai/jizai/kit";
 * import { assertEquals } from "@std/assert";
 *
 * const late = new AbortController();
 * const signal = anySignal([new AbortController().signal, late.signal]);
 * late.abort("late");
 * assertEquals(signal.reason, "late");
 * ```
 */
export function anySignal(signals: AbortSignal[]): AbortSignal {
  return AbortSignal.any?.(signals) ?? following(signals);
}

/** Returns a signal that listens to each of `signals`. */
function following(signals: readonly AbortSignal[]): AbortSignal {
  const controller = new AbortController();
  const aborted = signals.find((signal) => signal.aborted);
  if (aborted) controller.abort(aborted.reason);
  const once = { once: true, signal: controller.signal };
  for (const signal of aborted ? [] : signals) {
    signal.addEventListener("abort", () => controller.abort(signal.reason), once);
  }
  return controller.signal;
}

// Cancellation: one interface for signals and runs, grace periods, timers and delays.

/** A source of cancellation: an `AbortSignal`, or a run, which needs one listener for all of its calls. */
export interface Cancellation {
  /** True once the work should stop. */
  readonly aborted: boolean;
  /** The reason to stop. */
  readonly reason: unknown;
  /** Calls `listener` on abort. Returns a function that removes the listener. */
  onAbort(listener: () => void): () => void;
}

/** Returns an `AbortSignal` as a `Cancellation`. */
export function cancellationOf(signal: AbortSignal): Cancellation {
  return new SignalCancellation(signal);
}

/** A class, because an object literal with accessors costs a microsecond each time it is created. */
class SignalCancellation implements Cancellation {
  readonly #signal: AbortSignal;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  get aborted(): boolean {
    return this.#signal.aborted;
  }
  get reason(): unknown {
    return this.#signal.reason;
  }

  onAbort(listener: () => void): () => void {
    this.#signal.addEventListener("abort", listener, { once: true });
    return () => this.#signal.removeEventListener("abort", listener);
  }
}

/**
 * Settles with `work`. If `cancellation` aborts and `work` has not settled `grace` milliseconds later, calls `onAbandoned`, rejects with the
 * reason, and drops the late outcome of `work`.
 */
export function withGracePeriod<T>(
  work: Promise<T>,
  cancellation: Cancellation,
  grace: number,
  onAbandoned: () => void,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let removeListener: (() => void) | undefined;
    const settled = () => {
      clearTimeout(timer);
      removeListener?.();
    };
    const startGrace = () => {
      timer = startTimer(() => {
        settled();
        onAbandoned();
        reject(cancellation.reason);
      }, grace);
    };
    if (cancellation.aborted) startGrace();
    else removeListener = cancellation.onAbort(startGrace);
    work.then((value) => {
      settled();
      resolve(value);
    }, (error) => {
      settled();
      reject(error);
    });
  });
}

/** Calls `run` after `ms` milliseconds. Never calls it if `ms` exceeds 31 bits, since such a timer would fire at once. */
export function startTimer(run: () => void, ms: number): ReturnType<typeof setTimeout> | undefined {
  return ms < 2 ** 31 ? setTimeout(run, Math.max(ms, 0)) : undefined; // runtimes warn of a negative time
}

/** Resolves after `ms` milliseconds, or rejects with the reason of `signal`. */
export function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const cancel = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = startTimer(() => {
      signal.removeEventListener("abort", cancel);
      resolve();
    }, ms);
    signal.addEventListener("abort", cancel, { once: true });
  });
}

/** The options of `withinTime()`. */
export interface TimeOptions {
  /** Milliseconds that the work may take. */
  readonly ms: number;
  /** Aborts the work. */
  readonly signal: AbortSignal;
  /** The operation, for the error: `Cannot <operation>: ...`. Default: the error is a `TimeoutError` that names none. */
  readonly operation?: string;
  /** Milliseconds that the work has to settle after an abort, before it is abandoned. Default: 0. */
  readonly grace?: number;
}

/**
 * Does work. Once it has taken too long, or `signal` aborts, the signal of the work aborts, the promise rejects with the reason, and the late outcome of the
 * work is dropped.
 */
export async function withinTime<T>(
  work: (signal: AbortSignal) => T | Promise<T>,
  { ms, signal, operation, grace = 0 }: TimeOptions,
): Promise<T> {
  signal.throwIfAborted();
  const late = new AbortController();
  const either = anySignal([signal, late.signal]);
  const tooLong = () => operation ? new Error(`Cannot ${operation}: it took longer than ${ms} ms`) : lateAfter(ms);
  const timer = startTimer(() => late.abort(tooLong()), ms);
  const working = async () => await work(either);
  try {
    return await withGracePeriod(working(), cancellationOf(either), grace, () => {});
  } finally {
    clearTimeout(timer);
    either.throwIfAborted(); // in place of the result, and of the error of the stopped work
  }
}

/** Creates the error for work that took longer than `ms` milliseconds. */
export function lateAfter(ms: number): DOMException {
  return new DOMException(`Not done after ${ms} ms`, "TimeoutError");
}

/** Whether an error says that work took too long. */
export function isLate(error: unknown): boolean {
  return error instanceof DOMException && error.name === "TimeoutError";
}

/** Returns an abort reason as text: the message of an error, or the value itself. */
export function reasonOf(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason);
}

/** Returns true for a value that `await` would wait for, such as a promise or a query builder. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
