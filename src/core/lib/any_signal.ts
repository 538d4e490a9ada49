/**
 * Signals that follow several others.
 *
 * @module
 */

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
