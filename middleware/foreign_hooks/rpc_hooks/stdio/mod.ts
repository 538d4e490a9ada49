/**
 * Connects to hooks that are processes. For Deno.
 *
 * @module
 */
import { linesWire } from "../lines.ts";
import type { Program, Wire } from "../transport.ts";

/** Milliseconds that a process has to end after its input was closed. */
const grace = 2_000;

/**
 * Starts a process for a hook and connects to its standard input and output, with one message per line. Needs the permission to run it.
 * A message contains no line breaks and has no headers, such as `Content-Length`. A line that is no message is ignored.
 *
 * The standard error of the process is that of this process. A process that has ended is not started again. To stop a process, its input is closed; if it has
 * not ended 2 seconds later, it is killed. It does not keep this process running.
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
