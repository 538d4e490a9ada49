/**
 * The cost of a text delta, from the model to the end of the response.
 *
 * @module
 */
import { deltas, drain, floor } from "../kit/floor.ts";
import { type Load, served, streaming, tenFilters, tenHooks } from "../kit/load.ts";
import type { Measure } from "../kit/measure.ts";
import { medians } from "../kit/stopwatch.ts";

const count = 10_000;

/** Streams ten thousand deltas, 16 per read. */
export function batchedLoad(): Load {
  return { what: "a delta, 16 per read", run: served(streaming(count, { perRead: 16 })), count, unit: "delta" };
}

/** Streams ten thousand deltas: one or 16 per read, through hooks, through event filters. */
export async function deltaMeasures(): Promise<readonly Measure[]> {
  const time = await medians({
    floor: () => drain(floor(deltas(count))),
    single: served(streaming(count)),
    batched: batchedLoad().run,
    hooks: served(streaming(count), { use: tenHooks }),
    filters: served(streaming(count), { use: tenFilters }),
  }, { rounds: 80, warmUp: 10 });
  const excess = (beneath: number) => (beneath / time.single - 1) * 100;
  return [
    { what: "a delta of the floor", figure: time.floor / count, unit: "µs" },
    { what: "10,000 deltas, one per read, of the floor", figure: time.single / time.floor, atMost: 1.15, unit: "x" },
    { what: "10,000 deltas, 16 per read, of the floor", figure: time.batched / time.floor, atMost: 0.3, unit: "x" },
    { what: "... beneath ten hooks at every point", figure: excess(time.hooks), atMost: 5, unit: "%" },
    { what: "... beneath ten event filters", figure: excess(time.filters), atMost: 10, unit: "%" },
  ];
}
