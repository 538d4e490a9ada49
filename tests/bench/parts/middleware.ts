/**
 * The cost of six middleware that have nothing to do, and of strict mode.
 *
 * @module
 */
import { budget } from "@jizai/jizai/middleware/budget";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { instructions } from "@jizai/jizai/middleware/instructions";
import { otel } from "@jizai/jizai/middleware/otel";
import { subagents } from "@jizai/jizai/middleware/subagents";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import * as api from "@opentelemetry/api";
import { calling, type Load, type Options, type Run, served, streaming } from "../kit/load.ts";
import type { Measure } from "../kit/measure.ts";
import { medians } from "../kit/stopwatch.ts";
import { withTool } from "../kit/tools.ts";

/** They use no files and no exporter, and reach no limit. */
const idle = [
  otel(api),
  budget({ calls: 1_000_000 }),
  compaction(),
  instructions(memoryFiles()),
  workspace(memoryFiles()),
  subagents([]),
];

const turns = (options: Options) => served(calling(1, 40), { ...withTool(), ...options });
const calls = (options: Options) => served(calling(1_000), { ...withTool(), ...options });

const loads: Readonly<Record<string, (options: Options) => Run>> = {
  "10,000 deltas": (options) => served(streaming(10_000), options),
  "40 turns of one call": turns,
  "1,000 calls at once": calls,
};

/** Takes forty turns of one call each beneath the six middleware. */
export function turnsBeneath(): Load {
  const what = "a turn with one call, of 40, beneath six idle middleware";
  return { what, run: turns({ use: idle }), count: 40, unit: "turn" };
}

/** Runs a thousand calls at once beneath the six middleware. */
export function callsBeneath(): Load {
  const what = "one of 1,000 calls at once beneath six idle middleware";
  return { what, run: calls({ use: idle }), count: 1_000, unit: "call" };
}

/** Streams deltas, takes turns and runs calls: with the six middleware and without, and with the six in strict mode. */
export async function middlewareMeasures(): Promise<readonly Measure[]> {
  const measures: Measure[] = [];
  for (const [what, load] of Object.entries(loads)) {
    const cases = { without: load({}), beneath: load({ use: idle }), strict: load({ use: idle, strict: true }) };
    const time = await medians(cases, { rounds: 60, warmUp: 20 });
    const figure = (time.beneath / time.without - 1) * 100;
    measures.push({ what: `${what} beneath six idle middleware`, figure, atMost: 10, unit: "%" });
    measures.push({ what: `${what}, in strict mode`, figure: time.strict / time.beneath, unit: "x" });
  }
  return measures;
}
