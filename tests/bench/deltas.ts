/**
 * What a delta costs on its way through the whole handler.
 *
 * @module
 */
import { deltas, drained, floor } from "./floor.ts";
import { filtering, passing, served, streaming } from "./load.ts";
import type { Measure } from "./measure.ts";
import { medians } from "./stopwatch.ts";

const count = 10_000;

/** Ten thousand deltas: alone, together, beneath hooks, beneath filters. Gives what one costs at the floor, in microseconds, too. */
export async function deltaMeasures(): Promise<{ readonly measures: readonly Measure[]; readonly delta: number }> {
  const time = await medians({
    floor: () => drained(floor(deltas(count))),
    alone: served(streaming(count)),
    together: served(streaming(count, { together: 16 })),
    passing: served(streaming(count), { use: passing }),
    filtering: served(streaming(count), { use: filtering }),
  }, { rounds: 100, warmUp: 10 });
  const more = (beneath: number) => (beneath / time.alone - 1) * 100;
  return {
    delta: time.floor / count,
    measures: [
      { what: "10,000 deltas, one per read", figure: time.alone / time.floor, budget: 1.25, unit: "x" },
      { what: "10,000 deltas, 16 per read", figure: time.together / time.floor, budget: 0.3, unit: "x" },
      { what: "... beneath ten hooks at every point", figure: more(time.passing), budget: 5, unit: "%" },
      { what: "... beneath ten emit filters", figure: more(time.filtering), budget: 10, unit: "%" },
    ],
  };
}
