/**
 * The cost of a turn with one call, in deltas of the floor.
 *
 * @module
 */
import { deltas, drain, floor } from "../kit/floor.ts";
import { calling, floorOf, type Load, served, tenHooks } from "../kit/load.ts";
import type { Measure } from "../kit/measure.ts";
import { medians } from "../kit/stopwatch.ts";
import { withTool } from "../kit/tools.ts";

const turns = 40;
const count = 10_000;

/** Takes forty turns of one call each, and one that answers. */
export function turnLoad(): Load {
  return {
    what: "a turn with one call, of 40",
    run: served(calling(1, turns), withTool()),
    count: turns,
    unit: "turn",
  };
}

/** Takes forty turns of one call each, without hooks and with ten at every point. */
export async function turnMeasures(): Promise<readonly Measure[]> {
  const time = await medians({
    deltas: () => drain(floor(deltas(count))),
    floor: await floorOf(calling(1, turns), withTool()),
    none: served(calling(1, 0), withTool()),
    turns: turnLoad().run,
    noneBeneath: served(calling(1, 0), { ...withTool(), use: tenHooks }),
    turnsBeneath: served(calling(1, turns), { ...withTool(), use: tenHooks }),
  }, { rounds: 60, warmUp: 20 });
  const delta = time.deltas / count;
  const turn = (time.turns - time.none) / turns;
  const beneath = (time.turnsBeneath - time.noneBeneath) / turns;
  return [
    { what: "a turn with one call", figure: turn / delta, atMost: 8, unit: "deltas" },
    { what: "... its events alone, streamed by the floor", figure: time.floor / turns / delta, unit: "deltas" },
    { what: "... beneath ten hooks at every point", figure: beneath / turn, atMost: 2, unit: "x" },
  ];
}
