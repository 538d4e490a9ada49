/**
 * Prints the cost of Jizai relative to the floor, the least code that streams the same bytes. Ratios compare medians of interleaved rounds of one run.
 * `deno task bench turns calls` measures those parts only. Exits with 1 if a budget is missed.
 *
 * @module
 */
import { type Measure, report } from "./kit/measure.ts";
import { adapterMeasures } from "./parts/adapters.ts";
import { callMeasures } from "./parts/calls.ts";
import { capacityMeasures } from "./parts/capacity.ts";
import { crowdMeasures } from "./parts/crowd.ts";
import { deltaMeasures } from "./parts/deltas.ts";
import { followerMeasures } from "./parts/followers.ts";
import { linearMeasures } from "./parts/linear.ts";
import { longRunMeasures } from "./parts/long_runs.ts";
import { middlewareMeasures } from "./parts/middleware.ts";
import { modelMeasures } from "./parts/models.ts";
import { outputMeasures } from "./parts/outputs.ts";
import { postMeasures } from "./parts/posts.ts";
import { recordMeasures } from "./parts/records.ts";
import { recoverMeasures } from "./parts/recover.ts";
import { replayMeasures } from "./parts/replays.ts";
import { rpcMeasures } from "./parts/rpc.ts";
import { screenMeasures } from "./parts/screens.ts";
import { socketMeasures, workerdMeasures } from "./parts/sockets.ts";
import { storeMeasures } from "./parts/stores.ts";
import { toolSearchMeasures } from "./parts/tool_searches.ts";
import { turnMeasures } from "./parts/turns.ts";
import { wireMeasures } from "./parts/wires.ts";

const parts: Readonly<Record<string, () => Promise<readonly Measure[]>>> = {
  deltas: deltaMeasures,
  turns: turnMeasures,
  calls: callMeasures,
  posts: postMeasures,
  middleware: middlewareMeasures,
  crowd: crowdMeasures,
  sockets: socketMeasures,
  workerd: workerdMeasures,
  long_runs: longRunMeasures,
  linear: linearMeasures,
  records: recordMeasures,
  models: modelMeasures,
  outputs: outputMeasures,
  screens: screenMeasures,
  tool_searches: toolSearchMeasures,
  wires: wireMeasures,
  adapters: adapterMeasures,
  rpc: rpcMeasures,
  recover: recoverMeasures,
  replays: replayMeasures,
  followers: followerMeasures,
  capacity: capacityMeasures,
  stores: storeMeasures, // last, because the drivers that it loads slow the other parts
};

const chosen = Deno.args.length > 0 ? Deno.args : Object.keys(parts);
const unknown = chosen.filter((name) => !(name in parts));
if (unknown.length > 0) {
  throw new TypeError(`Cannot measure ${unknown.join(", ")}: expected some of ${Object.keys(parts).join(", ")}`);
}

const measures: Measure[] = [];
for (const name of chosen) measures.push(...await parts[name]?.() ?? []);
report(measures);
