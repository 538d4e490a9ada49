/**
 * What it costs to ask a hook of PicoClaw that is a program.
 *
 * @module
 */
import { rpc_hooks } from "@jizai/jizai/middleware/rpc_hooks";
import { stdio } from "@jizai/jizai/middleware/rpc_hooks/stdio";
import { calling, served, working } from "./load.ts";
import type { Measure } from "./measure.ts";
import { medians } from "./stopwatch.ts";

const turns = 40;

/** What a run takes longer for each question to a program that lets everything pass. */
export async function rpcMeasure(): Promise<Measure> {
  const program = new URL("echo_hook.ts", import.meta.url).pathname;
  const command = [Deno.execPath(), "run", program];
  const intercept = ["before_tool", "approve_tool", "after_tool"];
  await using hooks = rpc_hooks({ enabled: true, processes: { echo: { enabled: true, command, intercept } } }, {
    stdio,
  });
  const time = await medians({
    none: served(calling(1, turns), working()),
    asking: served(calling(1, turns), { ...working(), use: [hooks] }),
  }, { rounds: 20 });
  return {
    what: "a question to a program beneath rpc_hooks()",
    figure: (time.asking - time.none) / turns / intercept.length / 1_000,
    budget: 1,
    unit: "ms",
  };
}
