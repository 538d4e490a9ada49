/**
 * The `error` and `abort` hooks: whether a failure is tried again, skipped or ends the run, and the cleanup of a run that is cut short.
 *
 * ```text
 * decideOnError      runs the `error` hooks for a failure, and returns their decision
 * retried            runs work again as long as they decide so
 * notifyErrorHooks   runs them for a failure that ends the run whatever they decide
 * reportFatal        runs work whose failure ends the run, and notifies them of it
 * cleanUp            runs the `abort` hooks
 * ```
 *
 * @module
 */
import { abortRun, skip } from "./hook_answers.ts";
import { isInterrupt } from "./interrupt.ts";
import { cancellationOf, delay, startTimer, withGracePeriod } from "./lib/cancellation.ts";
import type { AbortContext, ErrorContext, ErrorDecision } from "./points.ts";
import { type HookAnswer, type PointPolicy, policyOf } from "./policy.ts";
import type { EngineRun, EngineScope } from "./run.ts";
import type { Change, Scope } from "./scope.ts";
import { ModelError } from "../model/model.ts";
import type { Point } from "../protocol/event.ts";
import type { Call } from "../protocol/part.ts";

const errorPolicy: PointPolicy<ErrorContext, Change, ErrorDecision, undefined> = /* @__PURE__ */ policyOf("error", {
  core: defaultDecision,
  finalize: checkDecision,
});

/** The core of `error`: the model reads a tool's failure, the run continues after a failed compaction, and every other failure aborts the run. */
function defaultDecision({ source }: ErrorContext): Promise<ErrorDecision> {
  return Promise.resolve(source === "execute" || source === "compact" ? skip() : abortRun());
}

/** Returns the reason why a tool does not run again. */
export function runsOnce(tool = "it"): string {
  return `${tool} runs once; expected a tool with \`idempotent: true\`, or one that has begun a step`;
}

/** Throws if a hook returned no decision, a time for which no timer waits, or repeats a tool that runs once. */
function checkDecision(
  { name, ctx, returned }: HookAnswer<ErrorContext, ErrorDecision, undefined>,
): ErrorDecision {
  const type: unknown = returned?.type; // hooks written without types may return anything
  if (type !== "retry" && type !== "skip" && type !== "abort") {
    throw new TypeError(`Cannot leave error: "${name}" returned no tryAgain(), skip() or abortRun()`);
  }
  if (returned.type === "retry" && !(returned.after < 2 ** 31)) {
    throw new RangeError(
      `Cannot try again: "${name}" returned \`after: ${returned.after}\`; expected milliseconds below ${2 ** 31}`,
    );
  }
  if (returned.type === "retry" && ctx.source === "execute" && !ctx.recoverable) {
    throw new TypeError(`Cannot try again in "${name}": ${runsOnce(ctx.name)}`);
  }
  return returned;
}

/** A failure, as the `error` hooks see it. */
type Failure = Omit<ErrorContext, keyof Scope>;

/** Runs the `error` hooks and reports the failure. A failure of a hook never hides the first one. */
export async function decideOnError(
  { engine, run, signal, emit, vars }: EngineScope,
  failure: Failure,
): Promise<ErrorDecision> {
  const { definition, events, seenErrors } = engine;
  const ctx: ErrorContext = { run, signal, emit, vars, ...failure };
  let decision: ErrorDecision;
  try {
    decision = await definition.onions.error(ctx, undefined, errorPolicy);
  } catch (error) {
    if (isInterrupt(error)) throw error;
    events.warn("hook.failed", "A hook failed while it handled a failure.", { point: "error", error });
    decision = await defaultDecision(ctx);
  }
  if (decision.type === "abort") seenErrors.push(failure.error);
  else if (!seenErrors.includes(failure.error)) events.report(failure.error);
  return decision;
}

/** Runs `work` until it succeeds. The `error` hooks decide about each failure. If they skip the work, returns what `fallback` returns. */
export async function retried<R>(
  scope: EngineScope,
  source: Point,
  work: () => Promise<R>,
  fallback: () => R | Promise<R>,
): Promise<R> {
  for (let attempt = 1;; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (isInterrupt(error) || scope.engine.control.aborted) throw error;
      const recoverable = error instanceof ModelError && error.recoverable;
      const decision = await decideOnError(scope, { error, source, recoverable, attempt });
      if (decision.type === "abort") throw error;
      if (decision.type === "skip") return await fallback();
      await delay(decision.after, scope.signal);
    }
  }
}

/** Returns the result of `work`, whose failure ends the run. The `error` hooks see the failure once, where it was thrown. */
export function reportFatal<R>(scope: EngineScope, source: Point, work: Promise<R>): Promise<R> {
  return work.catch(async (error) => {
    await notifyErrorHooks(scope, source, error);
    throw error;
  });
}

/** Runs the `error` hooks for a failure that ends the run, unless they have seen it. Their decision has no effect. */
export async function notifyErrorHooks(scope: EngineScope, source: Point, error: unknown): Promise<void> {
  const { seenErrors, control } = scope.engine;
  if (isInterrupt(error) || control.aborted || seenErrors.includes(error)) return;
  seenErrors.push(error); // the result of the run reports it
  await decideOnError(scope, { error, source, recoverable: false, attempt: 1 });
}

const abortPolicy: PointPolicy<AbortContext, Change, void, EngineRun> = /* @__PURE__ */ policyOf("abort", {
  core: keepPartialText,
  silent: true,
});

/** The core of `abort`: keeps the text of the unfinished answer. */
function keepPartialText({ message }: AbortContext, { loop }: EngineRun): Promise<void> {
  const parts = message?.parts.filter((part) => part.type === "text" && part.text !== "") ?? [];
  if (parts.length > 0) loop.append([{ role: "assistant", parts }]);
  return Promise.resolve();
}

/** The cause of a cleanup, as the `abort` hooks see it. */
export interface CleanupCause {
  readonly reason: AbortContext["reason"];
  readonly source: AbortContext["source"];
  readonly status: AbortContext["status"];
}

/** Runs the `abort` hooks with a signal of their own and the grace period of the run. Never rejects. */
export async function cleanUp(
  engine: EngineRun,
  cause: CleanupCause,
  open: readonly Call[],
): Promise<void> {
  const { usage, limits: { grace }, work: { partial: message }, definition, events } = engine;
  const controller = new AbortController();
  const { signal } = controller;
  const timer = startTimer(
    () => controller.abort(new DOMException("The cleanup took too long", "TimeoutError")),
    grace,
  );
  let abandoned = false;
  try {
    const ctx: AbortContext = { ...engine.scope(), signal, ...cause, message, open, usage };
    await withGracePeriod(definition.onions.abort(ctx, engine, abortPolicy), cancellationOf(signal), 0, () => {
      abandoned = true;
    });
  } catch (error) {
    const point = { point: "abort" } as const;
    if (abandoned) events.warn("hook.abandoned", "A cleanup did not stop when its signal aborted.", point);
    else events.warn("hook.failed", "A hook failed during the cleanup.", { ...point, error });
  } finally {
    clearTimeout(timer);
  }
}
