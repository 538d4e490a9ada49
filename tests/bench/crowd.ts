/**
 * Many runs at the same time, each of which waits for its model with every delta.
 *
 * @module
 */
import { deltas, drained, floor } from "./floor.ts";
import { type Run, served, streaming } from "./load.ts";
import type { Measure } from "./measure.ts";
import { collect, medians } from "./stopwatch.ts";

const runs = 500;
const count = 200;
const macrotask = () => new Promise<void>((resolve) => setTimeout(resolve));
const run = served(streaming(count, { between: macrotask }));

/** So many runs at once. */
const crowd = (run: Run, times = runs) => Promise.all(Array.from({ length: times }, run));

/** What the runs hold while they go on, and what is left of them. To be asked first: memory that a process was given stays its own. */
export async function memoryMeasures(): Promise<readonly Measure[]> {
  await crowd(run, 20);
  const idle = used();
  const most = { ...idle };
  // garbage is left to lie for as long as there is room: what is held shows only where it has been collected
  const timer = setInterval(() => {
    const { heap, resident } = used();
    most.heap = Math.max(most.heap, heap);
    most.resident = Math.max(most.resident, resident);
  }, 50);
  await crowd(run);
  clearInterval(timer);

  await crowd(run);
  const before = used();
  for (let round = 0; round < 4; round++) await crowd(run);
  const after = used();
  return [
    { what: "500 runs of 200 deltas at once, heap over idle", figure: most.heap - idle.heap, budget: 40, unit: "MB" },
    { what: "... resident over idle", figure: most.resident - idle.resident, budget: 40, unit: "MB" },
    { what: "... heap kept after 2,000 more", figure: after.heap - before.heap, budget: 1, unit: "MB" },
  ];
}

/** How long they take. */
export async function crowdMeasure(): Promise<Measure> {
  const time = await medians({
    floor: () => crowd(() => drained(floor(deltas(count, macrotask)))),
    served: () => crowd(run),
  }, { rounds: 7, warmUp: 1 });
  return { what: "... time", figure: time.served / time.floor, budget: 1.2, unit: "x" };
}

/** Megabytes in use, once the garbage is collected. */
export function used(): { heap: number; resident: number } {
  collect();
  const { heapUsed, external, rss } = Deno.memoryUsage();
  return { heap: (heapUsed + external) / 1_048_576, resident: rss / 1_048_576 };
}
