/**
 * Connects to hooks that are processes. For Deno, Node and Bun.
 *
 * @module
 */
import { type ChildProcess, spawn, type SpawnOptions } from "node:child_process";
import { type Readable, Writable } from "node:stream";
import { linesWire } from "./lines.ts";
import type { Program, Wire } from "../config.ts";
import { environmentOf } from "../../kit/process.ts";
import { startError } from "../../../../src/core/kit.ts";
export type { Program, Wire } from "../config.ts";

/** Milliseconds that a process has to end after its input was closed. */
const grace = 2_000;

/**
 * Starts a process for a hook and connects to its standard input and output, with one message per line. On Deno, it needs the permission to run it and to read
 * the environment, which the process inherits.
 * A message contains no line breaks and has no headers, such as `Content-Length`. A line that is not a message is ignored.
 *
 * The standard error of the process is that of this process. A process that has ended is not started again. To stop a process, its input is closed; if it has
 * not ended 2 seconds later, it is killed, without the processes that it has started. It does not keep this process running.
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
  const child = startChild(program, args, { env: environmentOf({ env }), ...(dir !== undefined && { cwd: dir }) });
  const exited = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", () => resolve()); // a child that did not start has no id
  });
  if (child.pid === undefined) throw new Error(`Cannot start "${program}": there is no such program`);
  keepAlive(child, false);
  const wire = linesWire({
    readable: bytesOf(child.stdout),
    writable: Writable.toWeb(child.stdin),
    ended: exited,
  });

  return {
    ...wire,
    async [Symbol.asyncDispose]() {
      keepAlive(child, true);
      const timer = setTimeout(() => child.kill("SIGKILL"), grace);
      await Promise.all([wire.end(), exited.finally(() => clearTimeout(timer))]);
      await wire[Symbol.asyncDispose]();
    },
  };
}

function startChild(program: string, args: readonly string[], place: Pick<SpawnOptions, "cwd" | "env">) {
  try {
    return spawn(program, args, { ...place, stdio: ["pipe", "pipe", "inherit"] });
  } catch (error) {
    throw startError(program, error);
  }
}

/** Returns an output as a stream. Unlike that of `Readable.toWeb()`, it can be cancelled while the output is open. */
function bytesOf(output: Readable): ReadableStream<Uint8Array> {
  const chunks: AsyncIterator<Uint8Array> = output[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await chunks.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: () => void output.destroy(),
  });
}

/** Sets whether a child and its pipes keep this process running. */
function keepAlive(child: ChildProcess, isKept: boolean): void {
  const { stdin, stdout } = child as { readonly [pipe in "stdin" | "stdout"]: Partial<Referable> | null }; // pipes are sockets
  for (const each of [child, stdin, stdout]) {
    if (isKept) each?.ref?.();
    else each?.unref?.();
  }
}

/** A resource that can keep a process running. */
interface Referable {
  ref(): void;
  unref(): void;
}
