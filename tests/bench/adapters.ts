/**
 * What adapters of other systems' hooks cost where none of the hooks is for what happens.
 *
 * @module
 */
import { agent, type Middleware } from "@jizai/jizai";
import { claude_hooks } from "@jizai/jizai/middleware/claude_hooks";
import { copilot_hooks } from "@jizai/jizai/middleware/copilot_hooks";
import { rpc_hooks, type Wire } from "@jizai/jizai/middleware/rpc_hooks";
import { yoi_hooks } from "@jizai/jizai/middleware/yoi_hooks";
import { calling, working } from "./load.ts";
import type { Measure } from "./measure.ts";
import { medians } from "./stopwatch.ts";

const others = [{ matcher: "Bash|Write", hooks: [() => ({})] }];

const wire: Wire = {
  ask: ({ id }) => Promise.resolve({ id, result: {} }),
  tell: () => Promise.resolve(),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};
const processes = { idle: { enabled: true, command: ["idle"], observe: ["gateway.ready"] } };

const adapters = {
  claude_hooks: claude_hooks({ PreToolUse: others, PostToolUse: others, PermissionRequest: others }),
  yoi_hooks: yoi_hooks({ on_prompt_submit: () => "Continue", on_abort: () => {} }),
  copilot_hooks: copilot_hooks({ onSessionEnd: () => null, onPostToolUseFailure: () => null }),
  rpc_hooks: rpc_hooks({ enabled: true, processes }, { stdio: () => wire }),
};

/** What each event of a run costs more beneath an adapter that has no hook for it. */
export async function adapterMeasures(): Promise<readonly Measure[]> {
  const model = calling(1, 100);
  const run = (use: readonly Middleware[]) => agent({ ...working(), model, use }).run("Hi");
  const { length } = await Array.fromAsync(run([]).events);
  const time = await medians({
    none: () => run([]).result,
    claude_hooks: () => run([adapters.claude_hooks]).result,
    yoi_hooks: () => run([adapters.yoi_hooks]).result,
    copilot_hooks: () => run([adapters.copilot_hooks]).result,
    rpc_hooks: () => run([adapters.rpc_hooks]).result,
  }, { rounds: 60, warmUp: 20 });
  return (["claude_hooks", "yoi_hooks", "copilot_hooks", "rpc_hooks"] as const).map((name) => ({
    what: `an event beneath ${name}() without a hook for it`,
    figure: (time[name] - time.none) / length,
    budget: 2,
    unit: "µs",
  }));
}
