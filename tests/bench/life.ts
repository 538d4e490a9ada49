/**
 * What all that an agent may have beside its tools costs where it has nothing to do.
 *
 * @module
 */
import { budget } from "@jizai/jizai/middleware/budget";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { delivery } from "@jizai/jizai/middleware/delivery";
import { instructions } from "@jizai/jizai/middleware/instructions";
import { otel } from "@jizai/jizai/middleware/otel";
import { subagents } from "@jizai/jizai/middleware/subagents";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import * as api from "@opentelemetry/api";
import { calling, served, streaming, working } from "./load.ts";
import type { Measure } from "./measure.ts";
import { medians } from "./stopwatch.ts";

/** Everything, with nothing to do: no files, no exporter, no limits within reach. */
const use = [
  otel(api),
  budget({ calls: 1_000_000 }),
  compaction(),
  instructions(memoryFiles()),
  workspace(memoryFiles()),
  subagents([]),
  delivery(() => {}),
];

/** Runs that stream, that take turns, and that make many calls at once, with all of it and with none. */
export async function lifeMeasures(): Promise<readonly Measure[]> {
  const loads = {
    "10,000 deltas": (options: Parameters<typeof served>[1]) => served(streaming(10_000), options),
    "40 turns of a call": (options: Parameters<typeof served>[1]) =>
      served(calling(1, 40), { ...working(), ...options }),
    "1,000 calls at once": (options: Parameters<typeof served>[1]) =>
      served(calling(1_000), { ...working(), ...options }),
  };
  const measures: Measure[] = [];
  for (const [what, load] of Object.entries(loads)) {
    const time = await medians({ bare: load({}), beneath: load({ use }) }, { rounds: 60, warmUp: 20 });
    const figure = (time.beneath / time.bare - 1) * 100;
    measures.push({ what: `${what}, all of life idle`, figure, budget: 10, unit: "%" });
  }
  return measures;
}
