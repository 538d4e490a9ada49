/**
 * The guard against growth. A budget is the figure that is wanted. A ceiling is the figure of today, rounded up: while a budget is missed, it shows growth.
 *
 * @module
 */
import { digits, type Measure } from "./measure.ts";

/** The unit of a guarded figure. No figure of these depends on time. */
type Unit = "KB" | "files" | "functions" | "hops";

/** A measure, and the largest figure that a change may leave. */
export interface Guarded extends Measure {
  readonly unit: Unit;
  readonly ceiling: number;
}

/** Ceilings are multiples of `step`. A new one leaves at least `slack`: the compressed size of a feature varies by that with the code around it. */
const rounding: Readonly<Record<Unit, { readonly step: number; readonly slack: number }>> = {
  KB: { step: 0.05, slack: 0.05 },
  files: { step: 1, slack: 0 },
  functions: { step: 1, slack: 0 },
  hops: { step: 1, slack: 0 },
};

/** Returns the ceiling that a figure would have today. A budget that is met is never exceeded by its ceiling. */
export function ceilingOf({ figure, atMost, unit }: Omit<Guarded, "what" | "ceiling">): number {
  const { step, slack } = rounding[unit];
  const ceiling = Number((Math.ceil((figure + slack) / step) * step).toFixed(2)); // without the error of a binary fraction
  return atMost !== undefined && figure <= atMost ? Math.min(ceiling, atMost) : ceiling;
}

/** Lists the measures above their ceilings, and those whose ceilings are more than one step too high. */
export function compared(measures: readonly Guarded[], file: string): string {
  const grown = measures.filter(({ figure, ceiling }) => figure > ceiling);
  const shrunk = measures.filter((measure) =>
    measure.ceiling - ceilingOf(measure) > rounding[measure.unit].step * 1.01
  );
  return [
    `${measures.length - grown.length} of ${measures.length} figures keep their ceilings in ${file}.`,
    ...grown.length > 0 ? ["Above: make it smaller, or raise the ceiling and commit the reason with it."] : [],
    ...grown.map((measure) => `${described(measure)}, ${excessOf(measure)} above ${measure.ceiling}`),
    ...shrunk.length > 0 ? ["Far below: lower the ceiling."] : [],
    ...shrunk.map((measure) => `${described(measure)}, from ${measure.ceiling} to ${ceilingOf(measure)}`),
  ].join("\n");
}

/** Prints how measures compare with their ceilings in `file`. Makes the process exit with 1 if one is above. */
export function guard(measures: readonly Guarded[], file: string): void {
  console.log(compared(measures, file));
  if (measures.some(({ figure, ceiling }) => figure > ceiling)) Deno.exitCode = 1;
}

function described(measure: Guarded): string {
  return `  ${measure.what}: ${digits(measure)} ${measure.unit}`;
}

function excessOf({ figure, ceiling, unit }: Guarded): string {
  return digits({ figure: figure - ceiling, unit });
}
