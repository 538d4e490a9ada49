/**
 * The failures of the hooks around the calls of a group.
 *
 * @module
 */
import { isInterrupt } from "../hooks/interrupt.ts";
import { decideOnError } from "../run/failure.ts";
import type { StepScope } from "../run/run.ts";
import type { OpenCall } from "./call.ts";

/** Runs the `error` hooks for hooks that failed. Returns the failures that end the run. */
export async function fatalErrors(scope: StepScope, calls: readonly OpenCall[]): Promise<readonly unknown[]> {
  const { engine } = scope;
  const fatal: unknown[] = [];
  for (const call of calls) {
    for (const error of call.failures) {
      if (!call.waiting) {
        if (await isFatal(scope, call, error)) fatal.push(error);
      } else if (!isInterrupt(error)) {
        engine.events.warn("hook.failed", "A hook failed while its call waited.", { point: "tool", error });
      }
    }
  }
  const others = engine.control.aborted ? [] : fatal.slice(1); // the result of the run reports the first
  for (const error of others) if (!isInterrupt(error)) engine.events.report(error);
  return fatal;
}

async function isFatal(scope: StepScope, { record: { call } }: OpenCall, error: unknown): Promise<boolean> {
  const { engine } = scope;
  if (isInterrupt(error) || engine.control.aborted || engine.seenErrors.has(error)) return true;
  const failure = { error, source: "tool", recoverable: false, attempt: 1, call } as const;
  const { type } = await decideOnError(scope, failure);
  return type === "abort";
}
