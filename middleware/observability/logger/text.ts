/**
 * Log lines as text.
 *
 * @module
 */
import type { Point } from "../../../mod.ts";
import { visible } from "../../../src/core/kit.ts";
import type { LogLine } from "./line.ts";

/** The importance of a line. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** The form of a line. */
export interface TextOptions {
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
export const levels: readonly LogLevel[] = ["debug", "info", "warn", "error"];
const failures: readonly string[] = ["threw", "failed"];
const warnings: readonly string[] = [
  ...["aborted", "abort", "cancelled", "denied", "deny", "error", "limit", "timeout"],
  ...["length", "filter", "refusal", "empty"], // responses that are not whole
];
const details: readonly Point[] = ["input", "turn", "approval", "execute", "stop"];

/** Returns the level of a line: "error" for a failure. Refusals, limits, stops and responses that are not whole are "warn", points inside another "debug", others "info". */
export function levelOf({ point, outcome }: Pick<LogLine, "point" | "outcome">): LogLevel {
  if (failures.includes(outcome)) return "error";
  if (warnings.includes(outcome)) return "warn";
  return details.includes(point) ? "debug" : "info";
}

/** Whether a level is at least another one. */
export function isAtLeast(level: LogLevel, least: LogLevel): boolean {
  return levels.indexOf(level) >= levels.indexOf(least);
}

/** Returns a line as text: the local time, the first characters of the run's id, and the point, indented by the points around it. */
export function textOfLine(line: LogLine, { depth, color }: TextOptions): string {
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
export function jsonOfLine(line: LogLine): string {
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
