/**
 * Hooks that are processes, on Deno.
 *
 * @module
 */
import { linesWire } from "../lines.ts";
import type { Program, Wire } from "../wire.ts";

/** How long a process may take to end after its input has, in milliseconds. */
const grace = 2_000;

/**
 * Starts a process for a hook, and talks with it over its standard input and output, one message on each line. Takes the permission to run it.
 * A message has no line breaks in it and no headers, such as `Content-Length`, before it; a line that is no message is not heard.
 *
 * What it writes to its standard error goes to that of this process. It is not started again when it ends. To leave it, its input ends; if it has not ended 2
 * seconds later, it is killed. It keeps no program running that has nothing else to do.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { rpc_hooks } from "@jizai/jizai/middleware/rpc_hooks";
 * import { stdio } from "@jizai/jizai/middleware/rpc_hooks/stdio";
 * import { scripted } from "@jizai/jizai/model/scripted";
 *
 * await using hooks = rpc_hooks({
 *   processes: {
 *     review_gate: { enabled: true, command: ["python3", "review_gate.py"], intercept: ["before_tool", "approve_tool"] },
 *   },
 * }, { stdio });
 * const assistant = agent({ model: scripted("Hello!"), use: [hooks] });
 * ```
 */
export function stdio({ command: [program = "", ...args], dir, env }: Program): Wire {
  const process = new Deno.Command(program, {
    args,
    env,
    ...(dir !== undefined && { cwd: dir }),
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  process.unref();
  const wire = linesWire({ readable: process.stdout, writable: process.stdin, ended: process.status });

  return {
    ...wire,
    async [Symbol.asyncDispose]() {
      process.ref();
      const timer = setTimeout(() => process.kill("SIGKILL"), grace);
      await Promise.all([wire.end(), process.status.finally(() => clearTimeout(timer))]);
      await wire[Symbol.asyncDispose]();
    },
  };
}
