/**
 * Measures: what is claimed, what was found, and whether it holds.
 *
 * @module
 */

/** A figure and the budget it has to stay within. */
export interface Measure {
  readonly what: string;
  readonly figure: number;
  readonly budget: number;
  /** x: times what it is compared with. %: more than that. Or a unit. */
  readonly unit: "x" | "%" | "µs" | "ms" | "MB" | "KB" | "deltas";
}

/** Measures as a table. */
export function table(measures: readonly Measure[]): string {
  const rows = measures.map(({ what, figure, budget, unit }) => [
    what,
    `${figure.toFixed(2)} ${unit}`,
    `${budget} ${unit}`,
    isMet({ figure, budget }) ? "met" : "NOT MET",
  ]);
  const all = [["measure", "figure", "at most", ""], ...rows];
  const widths = [0, 1, 2].map((column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all.map(([what = "", figure = "", budget = "", met = ""]) =>
    [what.padEnd(widths[0] ?? 0), figure.padStart(widths[1] ?? 0), budget.padStart(widths[2] ?? 0), met].join("  ")
      .trimEnd()
  ).join("\n");
}

/** Whether a figure is within its budget. */
export function isMet({ figure, budget }: Pick<Measure, "figure" | "budget">): boolean {
  return figure <= budget;
}
