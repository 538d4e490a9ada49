/**
 * Logs one structured line for every point.
 *
 * @module
 */
import { type Call, End, isInterrupt, type Middleware, type Point, type Scope } from "../../mod.ts";

/** One point, when it is over. It says no input, no text and no message of an error. */
export interface LogLine {
  /** When it was over, in ISO 8601. */
  readonly time: string;
  /** The run's id. */
  readonly run: string;
  /** The session's id. */
  readonly session: string;
  /** The point. */
  readonly point: Point;
  /** The turn, from 1, where it is about one. */
  readonly turn?: number;
  /** The tool's name, where it is about one. */
  readonly tool?: string;
  /** The call's id, where it is about one. */
  readonly call?: string;
  /** Milliseconds that it took, with all that lies beneath. */
  readonly ms: number;
  /** The status, the decision, or why the model stopped; `threw`, `ended` or `paused` where it gave nothing. */
  readonly outcome: string;
  /** The name of the error it threw, or at `error` of the one it was about. */
  readonly error?: string;
}

/**
 * Writes a line at each of the twelve points. `write` is called at once, and should not wait; where it throws, the run goes on with a warning.
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
 *   "model stop",
 *   "turn stop",
 *   "stop finish",
 *   "prompt done",
 *   "session done",
 * ]);
 * ```
 */
export function logger(write: (line: LogLine) => void): Middleware {
  async function log<R>(
    { run, emit }: Scope,
    subject: Pick<LogLine, "point" | "turn" | "tool" | "call" | "error">,
    next: () => Promise<R>,
    outcomeOf: (result: R) => string,
  ): Promise<R> {
    const start = performance.now();
    try {
      const result = await next();
      tell({ outcome: outcomeOf(result) });
      return result;
    } catch (error) {
      tell(thrown(error));
      throw error;
    }

    function tell(end: Pick<LogLine, "outcome" | "error">): void {
      const ms = Math.round((performance.now() - start) * 1_000) / 1_000;
      const time = new Date().toISOString();
      try {
        write({ time, run: run.id, session: run.session, ...subject, ms, ...end });
      } catch (error) {
        const message = `A line could not be logged: ${nameOf(error)}`;
        emit({ type: "warning", code: "observer.failed", message, middleware: "logger", point: subject.point });
      }
    }
  }

  return {
    name: "logger",
    session: (ctx, next) => log(ctx, { point: "session" }, next, statusOf),
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

function thrown(error: unknown): Pick<LogLine, "outcome" | "error"> {
  if (isInterrupt(error)) return { outcome: error instanceof End ? "ended" : "paused" };
  return { outcome: "threw", error: nameOf(error) };
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}
