/**
 * Measures: a figure, and the budget that it must keep.
 *
 * @module
 */
import { columns } from "./columns.ts";

/** A figure and its budget. Without a budget it is only printed. */
export interface Measure {
  readonly what: string;
  readonly figure: number;
  /** x: a multiple of the floor or of another case. %: the excess over another case. deltas: multiples of one delta of the floor. */
  readonly unit:
    | "x"
    | "%"
    | "µs"
    | "ms"
    | "MB"
    | "KB"
    | "deltas"
    | "k deltas/s"
    | "files"
    | "functions"
    | "hops"
    | "lines"
    | "copies"
    | "round trips"
    | "statements"
    | "events"
    | "runs";
  /** The largest figure allowed. */
  readonly atMost?: number;
  /** The smallest figure allowed. */
  readonly atLeast?: number;
}

/** Formats measures as a table that marks each missed budget. */
export function table(measures: readonly Measure[]): string {
  const rows = measures.map((measure) => [
    measure.what,
    `${digits(measure)} ${measure.unit}`,
    budgetOf(measure),
    budgetOf(measure) === "" ? "" : isMet(measure) ? "met" : "MISSED",
  ]);
  return columns([["measure", "figure", "budget", ""], ...rows], [0, 3]);
}

/** Whether a figure keeps its budget. */
export function isMet({ figure, atMost = Infinity, atLeast = -Infinity }: Omit<Measure, "what" | "unit">): boolean {
  return figure <= atMost && figure >= atLeast;
}

/** Prints measures as a table, and makes the process exit with 1 if a budget is missed. */
export function report(measures: readonly Measure[]): void {
  const missed = measures.filter((measure) => !isMet(measure));
  console.log(table(measures));
  if (missed.length === 0) return;
  console.log(`\n${missed.length} missed:\n${missed.map(({ what }) => `  ${what}`).join("\n")}`);
  Deno.exitCode = 1;
}

/** Formats a figure with the digits that matter in its unit. */
export function digits({ figure, unit }: Pick<Measure, "figure" | "unit">): string {
  return figure.toFixed(["files", "functions", "hops", "lines", "copies"].includes(unit) ? 0 : 2);
}

function budgetOf({ atMost, atLeast, unit }: Measure): string {
  if (atMost !== undefined && atLeast !== undefined) return `${atLeast} to ${atMost} ${unit}`;
  if (atMost !== undefined) return `<= ${atMost} ${unit}`;
  return atLeast === undefined ? "" : `>= ${atLeast} ${unit}`;
}
