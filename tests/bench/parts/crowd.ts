/**
 * The cost of 500 streams at the same time, each of which waits for its model before every delta.
 *
 * @module
 */
import { count, deltas, drain, floor, macrotask } from "../kit/floor.ts";
import { type Load, served, streaming } from "../kit/load.ts";
import type { Measure } from "../kit/measure.ts";
import { program } from "../kit/processes.ts";
import { median, medians, usedHeap } from "../kit/stopwatch.ts";

const streams = 500;
const run = served(streaming(count, { between: macrotask }));

/** Runs 500 streams at the same time. */
export function crowdLoad(): Load {
  return { what: "one of 500 streams of 200 deltas at once", run: () => crowd(run), count: streams, unit: "stream" };
}

/** Runs 500 streams at the same time, in this process for their time, and each time in a fresh process for their memory. */
export async function crowdMeasures(): Promise<readonly Measure[]> {
  const time = await medians({
    floor: () => crowd(() => drain(floor(deltas(count, macrotask)))),
    served: crowdLoad().run,
  }, { rounds: 7, warmUp: 1 });
  const before = usedHeap();
  for (let round = 0; round < 4; round++) await crowd(run);
  const kept = usedHeap() - before;
  const memory = { floor: await memories("floor"), served: await memories("served") };
  return [
    {
      what: "500 streams of 200 deltas at once, of the floor",
      figure: time.served / time.floor,
      atMost: 1.2,
      unit: "x",
    },
    { what: "... their memory over idle", figure: memory.served, unit: "MB" },
    { what: "... their memory over idle, of the floor", figure: memory.served / memory.floor, atMost: 1.3, unit: "x" },
    { what: "... heap that 2,000 more leave behind", figure: kept, atMost: 1, unit: "MB" },
  ];
}

function crowd(run: () => Promise<unknown>): Promise<unknown> {
  return Promise.all(Array.from({ length: streams }, run));
}

/** Returns the median of the megabytes that a fresh process needs for the streams, in addition to its idle memory. */
async function memories(of: "floor" | "served"): Promise<number> {
  const figures: number[] = [];
  for (let round = 0; round < 3; round++) {
    await using process = await program("crowd.ts", [of]);
    await process.line();
    const idle = await process.memory();
    await process.write("");
    await process.line();
    figures.push(await process.peakMemory() - idle);
  }
  return median(figures);
}
