/**
 * Logs one line per hook point: text for people, or structured data.
 *
 * @module
 */
import { type Call, End, isInterrupt, type Middleware, type Point, type Run, type Scope } from "../../mod.ts";
import { expectChoice, expectNames, isThenable, parseTraceparent, visible } from "../../src/core/kit.ts";

// The data of a log line, which contains no content.

/** One completed point. Contains no input, no text and no error message. */
export interface LogLine {
  /** Time of completion, in ISO 8601. */
  readonly time: string;
  /** Id of the run. */
  readonly run: string;
  /** Id of the session. */
  readonly session: string;
  /** Owner of the session, if the run was given one. */
  readonly owner?: string;
  /** Id of the trace in the `traceparent` of the request, if it had one: 32 hexadecimal digits. */
  readonly trace?: string;
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

/** Returns the id of the trace of a run, or of the run that it is a child of. */
function traceOf({ parent, traceparent }: Run): string | undefined {
  return parent ? traceOf(parent) : parseTraceparent(traceparent)?.traceId;
}

// Writes log lines as text for people, and as JSON for programs.

/** The importance of a line. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** The form of a line. */
interface TextOptions {
  /** The number of agents above the run. */
  readonly depth: number;
  /** Whether the text has ANSI colours. */
  readonly color: boolean;
}

/** The number of points around each point. */
const nesting: Readonly<Record<Point, number>> = {
  session: 0,
  input: 1,
  prompt: 1,
  abort: 1,
  turn: 2,
  stop: 2,
  compact: 2,
  error: 3,
  model: 3,
  tool: 3,
  approval: 4,
  execute: 4,
  subagent: 5,
};

/** The levels, the least important first. */
const levels: readonly LogLevel[] = ["debug", "info", "warn", "error"];
const failures: readonly string[] = ["threw", "failed"];
const warnings: readonly string[] = [
  ...["aborted", "abort", "cancelled", "denied", "deny", "error", "limit", "timeout"],
  ...["length", "filter", "refusal", "empty"], // responses that are not whole
];
const details: readonly Point[] = ["input", "turn", "approval", "execute", "stop"];

/** Returns the level of a line: "error" for a failure. Refusals, limits, stops and responses that are not whole are "warn", points inside another "debug", others "info". */
function levelOf({ point, outcome }: Pick<LogLine, "point" | "outcome">): LogLevel {
  if (failures.includes(outcome)) return "error";
  if (warnings.includes(outcome)) return "warn";
  return details.includes(point) ? "debug" : "info";
}

/** Whether a level is at least another one. */
function isAtLeast(level: LogLevel, least: LogLevel): boolean {
  return levels.indexOf(level) >= levels.indexOf(least);
}

/** Returns a line as text: the local time, the first characters of the run's id, and the point, indented by the points around it. */
function textOfLine(line: LogLine, { depth, color }: TextOptions): string {
  const { point, turn, tool, outcome, error, ms } = line;
  const at = new Date(line.time);
  const time = `${at.toTimeString().slice(0, 8)}.${`${at.getMilliseconds()}`.padStart(3, "0")}`;
  const run = line.run.slice(0, 8);
  const subject = [point, tool ?? (point === "turn" || point === "model" ? turn : undefined)];
  const text = visible([...subject, outcome, error].filter((part) => part !== undefined).join(" ")); // the model makes up names
  const indent = "  ".repeat(nesting[point] + depth * 5);
  const took = `${Math.round(ms)} ms`;
  if (!color) return `${time} ${run} ${indent}${text} ${took}`;
  return `${dim(time)} ${paint(colorOf(run), run)} ${indent}${paint(colors[levelOf(line)], text)} ${dim(took)}`;
}

/** Returns a line as JSON. The characters that a terminal would execute or hide are escaped, because the model makes up names. */
function jsonOfLine(line: LogLine): string {
  return JSON.stringify(line).replace(/\p{C}/gu, (char) => char.split("").map(escapeOf).join(""));
}

function escapeOf(codeUnit: string): string {
  return `\\u${codeUnit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** The ANSI colours of the levels. */
const colors: Readonly<Record<LogLevel, number>> = { debug: 90, info: 39, warn: 33, error: 31 };

/** Returns one of six colours, so that the lines of concurrent runs can be told apart. */
function colorOf(run: string): number {
  let sum = 0;
  for (const char of run) sum += char.charCodeAt(0);
  return 31 + sum % 6;
}

function paint(code: number, text: string): string {
  return `\u001b[${code}m${text}\u001b[39m`;
}

function dim(text: string): string {
  return `\u001b[2m${text}\u001b[22m`;
}

// The middleware `logger()`, and its options.

/** Options of `logger()`. */
export interface LoggerOptions {
  /**
   * The least important level that is written. error: a point threw, or the run failed; warn: denied, aborted, timed out; debug: `input`, `turn`, `approval`,
   * `execute` and `stop`. Default: "info".
   */
  readonly level?: LogLevel;
  /** The form of a line: text for people, or JSON. Default: "text" if standard output is a terminal, otherwise "json". */
  readonly format?: "text" | "json";
  /** Whether text has ANSI colours. Default: true if standard output is a terminal. */
  readonly color?: boolean;
  /** Writes a line. Default: `console.log`. */
  readonly write?: (line: string) => unknown;
}

/**
 * Logs each completed point. `logger()` writes for people on a terminal, and JSON elsewhere: the time, the start of the run's id, the point, the outcome and
 * the duration. With a function, it passes a structured line for each of the thirteen points. The run does not wait for it. If it throws or
 * rejects, the run continues, the error is reported to the operator, and a warning is emitted.
 *
 * Agents that are tools inherit it. An agent with a `logger()` of its own writes to both, so give it the same object, or none.
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
export function logger(to: LoggerOptions | ((line: LogLine) => unknown) = {}): Middleware {
  const write = typeof to === "function" ? to : lineWriter(to);

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
      const { owner } = scope.run;
      const trace = traceOf(scope.run);
      const ms = Math.round((performance.now() - start) * 1_000) / 1_000;
      const line = {
        time: new Date().toISOString(),
        run: scope.run.id,
        session: scope.run.session,
        ...(owner !== undefined && { owner }),
        ...(trace !== undefined && { trace }),
        ...subject,
        ms,
        ...end,
      };
      const failed = (error: unknown) => warn(scope, subject.point, error);
      try {
        const written = write(line, scope.run.path.length);
        if (isThenable(written)) written.then(undefined, failed); // the run does not wait; a failure is reported
      } catch (error) {
        failed(error);
      }
    }
  }

  return {
    name: "logger",
    inherit: true,
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

/** Returns a function that writes lines as text. It receives the number of agents above the run, too. */
function lineWriter(options: LoggerOptions): (line: LogLine, depth: number) => unknown {
  const subject = "Cannot create logger()";
  expectNames(subject, options, ["level", "format", "color", "write"]);
  const isTerminal = hasTerminal();
  const { level = "info", format = isTerminal ? "text" : "json", color = isTerminal, write = print } = options;
  expectChoice(subject, "level", level, levels);
  expectChoice(subject, "format", format, ["text", "json"]);
  return (line, depth) => {
    if (!isAtLeast(levelOf(line), level)) return;
    return write(format === "json" ? jsonOfLine(line) : textOfLine(line, { depth, color }));
  };
}

/** Whether standard output is a terminal. Runtimes without processes have none. */
function hasTerminal(): boolean {
  const { process } = globalThis as { process?: { stdout?: { isTTY?: boolean } } }; // Node, Bun and Deno have it
  return process?.stdout?.isTTY === true;
}

function print(line: string): void {
  console.log(line);
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

function warn({ run, emit }: Scope, point: Point, cause: unknown): void {
  const error = run.report(cause);
  const message = `A log line could not be written: ${nameOf(cause)}.`;
  emit({ type: "warning", code: "observer.failed", message, middleware: "logger", point, error });
}
