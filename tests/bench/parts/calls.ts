/**
 * The cost of calls that a model makes at once.
 *
 * @module
 */
import { calling, floorOf, type Load, served } from "../kit/load.ts";
import type { Measure } from "../kit/measure.ts";
import { medians } from "../kit/stopwatch.ts";
import { withTool } from "../kit/tools.ts";

/** Runs a thousand calls at once that do nothing. */
export function callLoad(): Load {
  return { what: "one of 1,000 calls at once", run: served(calling(1_000), withTool()), count: 1_000, unit: "call" };
}

/** Runs calls that wait 20 ms, and calls that do nothing. The floor streams two events for each call: the call and its result. */
export async function callMeasures(): Promise<readonly Measure[]> {
  const sleep = () => new Promise<string>((resolve) => setTimeout(() => resolve("ok"), 20));
  const slow = await medians({
    floor: await floorOf(calling(64), withTool(sleep), { execute: sleep }),
    served: served(calling(64), withTool(sleep)),
  }, { rounds: 20, warmUp: 5 });
  const fast = await medians({
    floor: await floorOf(calling(1_000), withTool(), { without: ["tool.started", "approval.decided"] }),
    sameEvents: await floorOf(calling(1_000), withTool()),
    served: callLoad().run,
  }, { rounds: 40, warmUp: 20 });
  const many = await medians({ served: served(calling(10_000), withTool()) }, { rounds: 7, warmUp: 2 });
  return [
    { what: "64 calls of 20 ms, of the floor", figure: slow.served / slow.floor, atMost: 1.05, unit: "x" },
    { what: "1,000 calls that do nothing, of the floor", figure: fast.served / fast.floor, atMost: 2, unit: "x" },
    { what: "... of a floor that streams the same events", figure: fast.served / fast.sameEvents, unit: "x" },
    { what: "... one of them", figure: fast.served / 1_000, unit: "µs" },
    {
      what: "... one of 10,000, of one of 1,000",
      figure: many.served / 10 / fast.served,
      atMost: 1.25,
      unit: "x",
    },
  ];
}
