/**
 * The cost of adapters for other systems' hooks when no hook matches.
 *
 * @module
 */
import { agent, type Middleware } from "@jizai/jizai";
import { claude_hooks } from "@jizai/jizai/middleware/claude_hooks";
import { copilot_hooks } from "@jizai/jizai/middleware/copilot_hooks";
import { rpc_hooks, type Wire } from "@jizai/jizai/middleware/rpc_hooks";
import { yoi_hooks } from "@jizai/jizai/middleware/yoi_hooks";
import { calling } from "../kit/load.ts";
import type { Measure } from "../kit/measure.ts";
import { medians } from "../kit/stopwatch.ts";
import { withTool } from "../kit/tools.ts";

const unmatched = [{ matcher: "Bash|Write", hooks: [() => ({})] }];

const wire: Wire = {
  ask: ({ id }) => Promise.resolve({ id, result: {} }),
  notify: () => Promise.resolve(),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};
const processes = { idle: { enabled: true, command: ["idle"], observe: ["gateway.ready"] } };

const adapters = {
  claude_hooks: claude_hooks({ PreToolUse: unmatched, PostToolUse: unmatched, PermissionRequest: unmatched }),
  yoi_hooks: yoi_hooks({ on_prompt_submit: () => "Continue", on_abort: () => {} }),
  copilot_hooks: copilot_hooks({ onSessionEnd: () => null, onPostToolUseFailure: () => null }),
  rpc_hooks: rpc_hooks({ enabled: true, processes }, { stdio: () => wire }),
};

/** Runs a hundred turns with each adapter, and divides the added time by the events of the run. */
export async function adapterMeasures(): Promise<readonly Measure[]> {
  const model = calling(1, 100);
  const run = (use: readonly Middleware[]) => agent({ ...withTool(), model, use }).run("Hi");
  const { length } = await Array.fromAsync(run([]).events);
  const time = await medians({
    none: () => run([]).result,
    claude_hooks: () => run([adapters.claude_hooks]).result,
    yoi_hooks: () => run([adapters.yoi_hooks]).result,
    copilot_hooks: () => run([adapters.copilot_hooks]).result,
    rpc_hooks: () => run([adapters.rpc_hooks]).result,
  }, { rounds: 60, warmUp: 20 });
  return (["claude_hooks", "yoi_hooks", "copilot_hooks", "rpc_hooks"] as const).map((name) => ({
    what: `an event beneath ${name}() without a matching hook`,
    figure: (time[name] - time.none) / length,
    atMost: 2,
    unit: "µs",
  }));
}
