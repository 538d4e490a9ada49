/**
 * Profiles of a load: where its time goes, and where it allocates.
 *
 * @module
 */
import { allocations, type Cost, type CpuProfile, type HeapNode, selfTimes } from "./cost.ts";
import { inspect } from "../kit/inspector.ts";
import type { Load } from "../kit/load.ts";
import { median } from "../kit/stopwatch.ts";

/** The costs of a load for each of its units, such as a request. */
export interface Profile {
  /** The microseconds of a unit while no profiler runs. */
  readonly time: number;
  /** The self time of each function, in microseconds of a profile. Only their ratios matter. */
  readonly times: readonly Cost[];
  /** The bytes that each function allocates. */
  readonly bytes: readonly Cost[];
}

/** Profiles a load for some seconds, once it is warm. */
export async function profiled({ run, count }: Load): Promise<Profile> {
  await repeated(run, 2_000);
  const time = median(await repeated(run, 2_000)) / count;
  await inspect("Profiler.enable");
  await inspect("Profiler.setSamplingInterval", { interval: 100 });
  await inspect("Profiler.start");
  await repeated(run, 5_000);
  const { profile } = await inspect("Profiler.stop") as { readonly profile: CpuProfile }; // as the protocol describes it
  await inspect("HeapProfiler.startSampling", {
    samplingInterval: 8_192,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  });
  const runs = (await repeated(run, 2_000)).length;
  const heap = await inspect("HeapProfiler.stopSampling") as { readonly profile: { readonly head: HeapNode } }; // as above
  const bytes = allocations(heap.profile.head).map((cost) => ({ ...cost, self: cost.self / runs / count }));
  return { time, times: selfTimes(profile), bytes };
}

/** Runs a load again and again for some milliseconds. Returns the microseconds of each run. */
async function repeated(run: Load["run"], milliseconds: number): Promise<readonly number[]> {
  const times: number[] = [];
  const end = performance.now() + milliseconds;
  while (performance.now() < end) {
    const start = performance.now();
    await run();
    times.push((performance.now() - start) * 1_000);
  }
  return times;
}
