/**
 * Logs one structured line per hook point.
 *
 * @module
 */
import { type Call, End, isInterrupt, type Middleware, type Point, type Scope } from "../../mod.ts";

/** One completed point. Contains no input, no text and no error message. */
export interface LogLine {
  /** Time of completion, in ISO 8601. */
  readonly time: string;
  /** Id of the run. */
  readonly run: string;
  /** Id of the session. */
  readonly session: string;
  /** The point. */
  readonly point: Point;
  /** Number of the turn, from 1, if the point belongs to one. */
  readonly turn?: number;
  /** Name of the tool, if the point belongs to a call. */
  readonly tool?: string;
  /** Id of the call, if the point belongs to one. */
  readonly call?: string;
  /** Duration in milliseconds, inner layers included. */
  readonly ms: number;
  /** The status, the decision or the finish reason; `threw`, `ended` or `paused` if there is no result. */
  readonly outcome: string;
  /** Name of the thrown error; at `error`, of the error that is handled. */
  readonly error?: string;
}

/**
 * Calls `write` with a line at each of the thirteen points. The run does not wait for `write`. If it throws or rejects, the run continues, the error is reported
 * to the operator, and a warning is emitted.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { type LogLine, logger } from "@jizai/jizai/middleware/logger";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const lines: LogLine[] = [];
 * const assistant = agent({ model: scripted("Hello!"), use: [logger((line) => lines.push(line))] });
 *
 * await assistant.run("Hi").result;
 * assertEquals(lines.map(({ point, outcome }) => `${point} ${outcome}`), [
 *   "input accepted",
 *   "model stop",
 *   "turn stop",
 *   "stop finish",
 *   "prompt done",
 *   "session done",
 * ]);
 * ```
 */
export function logger(write: (line: LogLine) => unknown): Middleware {
  async function log<R>(
    scope: Scope,
    subject: Pick<LogLine, "point" | "turn" | "tool" | "call" | "error">,
    next: () => Promise<R>,
    outcomeOf: (result: R) => string,
  ): Promise<R> {
    const start = performance.now();
    try {
      const result = await next();
      writeLine({ outcome: outcomeOf(result) });
      return result;
    } catch (error) {
      writeLine(outcomeOfError(error));
      throw error;
    }

    function writeLine(end: Pick<LogLine, "outcome" | "error">): void {
      const ms = Math.round((performance.now() - start) * 1_000) / 1_000;
      const line = {
        time: new Date().toISOString(),
        run: scope.run.id,
        session: scope.run.session,
        ...subject,
        ms,
        ...end,
      };
      const failed = (error: unknown) => warn(scope, subject.point, error);
      try {
        const written = write(line);
        if (isThenable(written)) written.then(undefined, failed); // the run does not wait; a failure is reported
      } catch (error) {
        failed(error);
      }
    }
  }

  return {
    name: "logger",
    session: (ctx, next) => log(ctx, { point: "session" }, next, statusOf),
    input: (ctx, next) => log(ctx, { point: "input" }, next, statusOf),
    prompt: (ctx, next) => log(ctx, { point: "prompt" }, next, statusOf),
    turn: (ctx, next) => log(ctx, { point: "turn", turn: ctx.index }, next, ({ response }) => response.finish),
    model: (ctx, next) => log(ctx, { point: "model", turn: ctx.turn }, next, ({ finish }) => finish),
    tool: (ctx, next) => log(ctx, { point: "tool", ...callOf(ctx, ctx.name) }, next, statusOf),
    approval: (ctx, next) => log(ctx, { point: "approval", ...callOf(ctx, ctx.name) }, next, typeOf),
    execute: (ctx, next) => log(ctx, { point: "execute", ...callOf(ctx, ctx.tool.name) }, next, statusOf),
    stop: (ctx, next) => log(ctx, { point: "stop" }, next, typeOf),
    compact: (ctx, next) => log(ctx, { point: "compact" }, next, typeOf),
    subagent: (ctx, next) => log(ctx, { point: "subagent", call: ctx.call }, next, statusOf),
    error: (ctx, next) => log(ctx, { point: "error", ...failureOf(ctx) }, next, typeOf),
    abort: (ctx, next) => log(ctx, { point: "abort" }, next, () => "done"),
  };
}

function statusOf({ status }: { readonly status: string }): string {
  return status;
}

function typeOf({ type }: { readonly type: string }): string {
  return type;
}

function callOf({ turn, call }: { readonly turn: number; readonly call: Call }, tool: string) {
  return { turn, tool, call: call.id };
}

function failureOf({ error, name }: { readonly error: unknown; readonly name?: string }) {
  return { error: nameOf(error), ...(name !== undefined && { tool: name }) };
}

function outcomeOfError(error: unknown): Pick<LogLine, "outcome" | "error"> {
  if (isInterrupt(error)) return { outcome: error instanceof End ? "ended" : "paused" };
  return { outcome: "threw", error: nameOf(error) };
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

function warn({ run, emit }: Scope, point: Point, cause: unknown): void {
  const error = run.report(cause);
  const message = `A log line could not be written: ${nameOf(cause)}.`;
  emit({ type: "warning", code: "observer.failed", message, middleware: "logger", point, error });
}
