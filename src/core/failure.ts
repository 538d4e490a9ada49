/**
 * Failures and cuts: what is done about an error, and the cleanup of a run that was cut short.
 *
 * @module
 */
import { ModelError } from "../model/model.ts";
import { cancellationOf, startTimer, withGracePeriod } from "./abandon.ts";
import { abortRun, skip } from "./answers.ts";
import { isInterrupt } from "./interrupt.ts";
import { lawOf } from "./law.ts";
import type { Point } from "../protocol/event.ts";
import type { Live } from "./live.ts";
import type { Law } from "./onion.ts";
import type { AbortContext, ErrorContext, ErrorDecision } from "./points.ts";
import type { Change, Scope } from "./scope.ts";

/** The law of `error`. */
export const errorLaw: Law<ErrorContext, Change, ErrorDecision, Live> = lawOf("error", []);

/** The core of `error`: a tool's failure is told to the model, after that of a compaction the oldest messages are left out, anything else aborts. */
export function decideFailure({ source }: ErrorContext): Promise<ErrorDecision> {
  return Promise.resolve(source === "execute" || source === "compact" ? skip() : abortRun());
}

/** A failure to be judged. */
export type Failed = Pick<ErrorContext, "error" | "source" | "recoverable" | "attempt" | "name" | "call">;

/** Asks `error` what to do about a failure, and tells the operator. A failure of its own never hides the first. */
export async function judge(live: Live, scope: Scope, failed: Failed): Promise<ErrorDecision> {
  const ctx: ErrorContext = { ...scope, ...failed };
  let decision: ErrorDecision;
  try {
    decision = await live.blueprint.onions.error(ctx, live);
  } catch (error) {
    if (isInterrupt(error)) throw error;
    live.events.warn("hook.failed", "A hook failed while it handled a failure.", { point: "error", error });
    decision = await decideFailure(ctx);
  }
  if (decision.type === "abort") live.judged.add(failed.error);
  else if (!live.judged.has(failed.error)) live.events.report(failed.error);
  return decision;
}

/** Has an error judged that ends the run: once, where it was thrown. */
export async function blame(live: Live, scope: Scope, error: unknown, source: Point): Promise<void> {
  if (isInterrupt(error) || live.aborted || live.judged.has(error)) return;
  live.judged.add(error); // whoever hears of the end hears of it
  await judge(live, scope, { error, source, recoverable: false, attempt: 1 });
}

/** What comes of `work` at `source`, which is blamed where it fails. */
export async function blaming<R>(live: Live, scope: Scope, source: Point, work: Promise<R>): Promise<R> {
  try {
    return await work;
  } catch (error) {
    await blame(live, scope, error, source);
    throw error;
  }
}

/** Whether the same request may succeed later: the model's word for it. */
export function recoverable(error: unknown): boolean {
  return error instanceof ModelError && error.recoverable;
}

/** The law of `abort`. */
export const abortLaw: Law<AbortContext, Change, void, Live> = lawOf("abort", [], { silent: true });

/** The core of `abort`: keeps what the model had said. */
export function keepPartial({ message }: AbortContext, live: Live): Promise<void> {
  const parts = message?.parts.filter((part) => part.type === "text" && part.text !== "") ?? [];
  if (parts.length > 0) live.transcript.push({ role: "assistant", parts });
  return Promise.resolve();
}

/** Runs the cleanup of a run cut short, with a signal of its own and so much time. */
export async function cleanUp(live: Live, reason: string): Promise<void> {
  const { open, usage, limits } = live;
  const message = live.partial?.();
  const controller = new AbortController();
  const { signal } = controller;
  const timer = startTimer(
    () => controller.abort(new DOMException("The cleanup took too long", "TimeoutError")),
    limits.grace,
  );
  let left = false;
  try {
    const work = live.blueprint.onions.abort({ ...live.scope(), signal, reason, message, open, usage }, live);
    await withGracePeriod(work, cancellationOf(signal), 0, () => {
      left = true;
    });
  } catch (error) {
    if (left) live.events.warn("hook.abandoned", "A cleanup did not stop when it was told to.", { point: "abort" });
    else live.events.warn("hook.failed", "A hook failed during the cleanup.", { point: "abort", error });
  } finally {
    clearTimeout(timer);
  }
}
