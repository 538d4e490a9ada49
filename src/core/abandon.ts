/**
 * The one place where work is left behind: what ignores its signal is waited for a while, and then no longer.
 *
 * @module
 */

/** Something that tells when to stop: a signal, or a run that spares a listener for every call. */
export interface Cancellation {
  /** True once it should stop. */
  readonly aborted: boolean;
  /** The reason to stop. */
  readonly reason: unknown;
  /** Calls `leave` on abort; the answer takes it back. */
  onAbort(leave: () => void): () => void;
}

/** An `AbortSignal` as something that tells when to stop. */
export function cancellationOf(signal: AbortSignal): Cancellation {
  return {
    get aborted() {
      return signal.aborted;
    },
    get reason() {
      return signal.reason;
    },
    onAbort(leave) {
      signal.addEventListener("abort", leave, { once: true });
      return () => signal.removeEventListener("abort", leave);
    },
  };
}

/**
 * Settles as `work` does; or, when it is told to stop and `work` has not settled `grace` milliseconds later, rejects with the reason.
 * What `work` comes to afterwards is dropped: `left` is told that it was.
 */
export function withGracePeriod<T>(work: Promise<T>, at: Cancellation, grace: number, left: () => void): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let forget: (() => void) | undefined;
    const done = () => {
      clearTimeout(timer);
      forget?.();
    };
    const wait = () => {
      timer = startTimer(() => {
        done();
        left();
        reject(at.reason);
      }, grace);
    };
    if (at.aborted) wait();
    else forget = at.onAbort(wait);
    const after = <V>(settle: (value: V) => void) => (value: V) => {
      done();
      settle(value);
    };
    work.then(after(resolve), after(reject));
  });
}

/** Calls `run` in `ms` milliseconds; never where that is longer than a timer can hold, which would fire at once. */
export function startTimer(run: () => void, ms: number): ReturnType<typeof setTimeout> | undefined {
  return ms < 2 ** 31 ? setTimeout(run, ms) : undefined;
}

/** Settles after `ms` milliseconds, or rejects with the signal's reason. */
export function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const leave = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = startTimer(() => {
      signal.removeEventListener("abort", leave);
      resolve();
    }, ms);
    signal.addEventListener("abort", leave, { once: true });
  });
}

/** A reason as a word. */
export function reasonOf(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason);
}
