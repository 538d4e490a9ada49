/**
 * The cost of a hook of PicoClaw that is a program.
 *
 * @module
 */
import { rpc_hooks } from "@jizai/jizai/middleware/rpc_hooks";
import { stdio } from "@jizai/jizai/middleware/rpc_hooks/stdio";
import { calling, served } from "../kit/load.ts";
import type { Measure } from "../kit/measure.ts";
import { medians } from "../kit/stopwatch.ts";
import { withTool } from "../kit/tools.ts";

const turns = 40;

/** Takes forty turns whose calls a program intercepts, and divides the added time by the questions. */
export async function rpcMeasures(): Promise<readonly Measure[]> {
  const program = new URL("../programs/echo_hook.ts", import.meta.url).pathname;
  const command = [Deno.execPath(), "run", program];
  const intercept = ["before_tool", "approve_tool", "after_tool"];
  await using hooks = rpc_hooks({ enabled: true, processes: { echo: { enabled: true, command, intercept } } }, {
    stdio,
  });
  const time = await medians({
    none: served(calling(1, turns), withTool()),
    asking: served(calling(1, turns), { ...withTool(), use: [hooks] }),
  }, { rounds: 20 });
  return [{
    what: "a question of rpc_hooks() to a program",
    figure: (time.asking - time.none) / turns / intercept.length / 1_000,
    atMost: 1,
    unit: "ms",
  }];
}
