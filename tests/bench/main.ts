/**
 * Prints what Jizai costs beside the least code that yields the same bytes. Ratios are taken within one run, of medians over rounds.
 *
 * @module
 */
import { adapterMeasures } from "./adapters.ts";
import { crowdMeasure, memoryMeasures } from "./crowd.ts";
import { deltaMeasures } from "./deltas.ts";
import { lifeMeasures } from "./life.ts";
import { longMeasure } from "./long.ts";
import { table } from "./measure.ts";
import { modelMeasures } from "./models.ts";
import { recordMeasures, resumeMeasure } from "./records.ts";
import { rpcMeasure } from "./rpc.ts";
import { callMeasures, hookMeasure, turnMeasures } from "./turns.ts";
import { wireMeasures } from "./wires.ts";

const memory = await memoryMeasures();
const long = await longMeasure();
const { measures, delta } = await deltaMeasures();
const all = [
  ...measures,
  await hookMeasure(),
  ...await adapterMeasures(),
  await rpcMeasure(),
  ...await turnMeasures(delta),
  ...await callMeasures(delta),
  ...await lifeMeasures(),
  ...await modelMeasures(),
  ...await wireMeasures(),
  ...await recordMeasures(),
  await resumeMeasure(),
  ...memory,
  await crowdMeasure(),
  long,
];
console.log(`A delta of the floor takes ${delta.toFixed(2)} µs.\n\n${table(all)}`);
