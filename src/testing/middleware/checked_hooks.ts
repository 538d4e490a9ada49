/**
 * Checked hooks: the hooks of a middleware receive frozen contexts, and their calls of `next()` are checked.
 *
 * @module
 */
import { eachHook } from "../../core/each_hook.ts";
import { End, isInterrupt, Pause } from "../../core/interrupt.ts";
import { freeze, isFrozenWrite } from "../../core/strict.ts";
import type { Hook } from "../../core/onion.ts";
import type { ModelResponse, RunResult, TurnResult } from "../../core/points.ts";
import type { Middleware } from "../../core/middleware.ts";
import type { Change, Scope } from "../../core/scope.ts";
import type { Emit, Point } from "../../protocol/event.ts";
import { textOf } from "../../protocol/message.ts";
import type { Report } from "./findings.ts";

/** Returns the points that a middleware hooks. */
export function pointsOf(middleware: Middleware): readonly Point[] {
  const points: Point[] = [];
  eachHook(middleware, (hook, point) => {
    points.push(point);
    return hook;
  });
  return points;
}

/** Returns the middleware with checked hooks. `track` receives every signal that the hooks receive. */
export function checkedMiddleware(
  middleware: Middleware,
  report: Report,
  track: (signal: AbortSignal) => void,
): Middleware {
  return eachHook(
    middleware,
    (hook, point) => inspect(hook, (law, observation) => report(law, observation, point), point, track),
  );
}

function inspect<C extends Scope, D extends Change, R>(
  hook: Hook<C, D, R>,
  report: Report,
  point: Point,
  track: (signal: AbortSignal) => void,
): Hook<C, D, R> {
  return async function inspectedHook(hookContext, next) {
    const thrown: unknown[] = [];
    const signals = [hookContext.signal];
    const [inside, outside] = [new LastStream(), new LastStream()];
    const emitOutside = outside.before(hookContext.emit);
    const ctx = responseTexts[point] ? { ...hookContext, emit: emitOutside } : hookContext;
    let unsettled = 0;
    let below: R | undefined;

    async function go(change?: D): Promise<R> {
      if (change?.signal) signals.push(change.signal);
      unsettled++;
      try {
        below = freeze(await next(checkedChange(change)));
        return below;
      } catch (error) {
        if (isMisuse(error)) report("next", error.message);
        thrown.push(error);
        throw error;
      } finally {
        unsettled--;
      }
    }

    /** Returns the change with an event filter that is checked, and whose deltas are tracked. */
    function checkedChange(change: D | undefined): D | undefined {
      const emit = change?.emit && filter(change.emit, report);
      if (responseTexts[point]) return { ...change, emit: inside.before(emit ?? emitOutside) } as D; // every point may change `emit`
      return emit ? { ...change, emit } as D : change;
    }

    track(ctx.signal);
    try {
      const returned = freeze(await hook(freeze(ctx), (change) => awaited(go(change))));
      const lost = thrown.find(isInterrupt);
      if (lost) report("unwinds", `${lost.name} was thrown by the inner layers, and it answered`);
      if (returned === undefined && point !== "abort") report("passes", "it returned nothing");
      const [was, is] = [below, returned].map((result) => responseTexts[point]?.(Object(result)));
      const isStreamed = inside.text !== "" && inside.text === was; // else another hook has changed it
      const isHeld = outside.text === "" && (point === "prompt" || point === "session"); // its deltas follow later, if at all
      if (isStreamed && !isHeld && is !== undefined && is !== outside.text) {
        report("streams", `it streamed ${JSON.stringify(outside.text)} and returned ${JSON.stringify(is)}`);
      }
      return returned;
    } catch (error) {
      reportError(error, thrown, signals, report);
      throw error;
    } finally {
      if (unsettled > 0) report("next", "it did not wait for next()");
    }
  };
}

/** Returns the text of the response that a hook returns, by point. Undefined if it is withdrawn. */
const responseTexts: {
  readonly [P in Point]?: (returned: Partial<ModelResponse & TurnResult & RunResult>) => string | undefined;
} = {
  model: ({ parts = [], finish }) => finish === "filter" ? undefined : textOf({ parts }),
  turn: ({ response = {} }) => responseTexts.model?.(response),
  prompt: ({ status, text }) => status === "cancelled" ? undefined : text,
  session: (returned) => responseTexts.prompt?.(returned),
};

/** Tracks the text of the last response in a stream of events. */
class LastStream {
  #text = "";
  #isOpen = true;

  get text(): string {
    return this.#text;
  }

  /** Returns a filter in front of `emit`. */
  before(emit: Emit): Emit {
    return (event) => {
      if (event.type === "model.started" || event.type === "model.reset") [this.#text, this.#isOpen] = ["", true];
      else if (event.type === "model.finished") this.#isOpen = false; // deltas after it are those of tools and hooks
      else if (event.type === "text.delta" && this.#isOpen) this.#text += event.text;
      emit(event);
    };
  }
}

/** Returns the promise, and prevents an unhandled rejection: a hook that does not await it is reported in another way. */
function awaited<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** Returns a filter that receives frozen events and must not throw. */
function filter(emit: Emit, report: Report): Emit {
  return (event) => {
    try {
      emit(freeze(event));
    } catch (error) {
      reportError(error, [], [], report);
      throw error;
    }
  };
}

/** Reports an error that a hook must not throw. It may throw interrupts and errors of the inner layers, and every error after its signal has aborted. */
function reportError(
  error: unknown,
  thrown: readonly unknown[],
  signals: readonly AbortSignal[],
  report: Report,
): void {
  const lost = thrown.filter(isInterrupt).find((interrupt) => interrupt !== error && !isReworded(interrupt, error));
  if (lost) report("unwinds", `${lost.name} was thrown by the inner layers, and it threw ${error}`);
  else if (isInterrupt(error) || isMisuse(error) || thrown.some((each) => carries(error, each))) return;
  else if (isFrozenWrite(error)) report("readonly", String(error));
  else if (signals.some(({ aborted }) => aborted)) return;
  else if (thrown.length > 0) {
    report("passes", `${thrown.at(-1)} was thrown by the inner layers, and it threw ${error}`);
  } else report("passes", `it threw ${error}`);
}

/**
 * Returns true if both are pauses that ask the same number of questions about the same calls, or ends of the same kind. The texts may differ, because a
 * middleware may mask them.
 */
function isReworded(thrown: unknown, error: unknown): boolean {
  if (thrown instanceof End && error instanceof End) {
    return (["as", "rollback", "withhold", "tree"] as const).every((key) => thrown[key] === error[key]);
  }
  if (!(thrown instanceof Pause && error instanceof Pause)) return false;
  if (thrown.questions.length !== error.questions.length) return false;
  return thrown.questions.every(({ callId, questions }, index) => {
    const other = error.questions[index];
    return other?.callId === callId && other?.questions.length === questions.length;
  });
}

/** Whether `error` is `cause` or contains it. */
export function carries(error: unknown, cause: unknown): boolean {
  if (error === cause) return true;
  if (error instanceof AggregateError && error.errors.some((each) => carries(each, cause))) return true;
  return error instanceof Error && error.cause !== undefined && carries(error.cause, cause);
}

function isMisuse(error: unknown): error is TypeError {
  return error instanceof TypeError && error.message.startsWith("Cannot call next()");
}
