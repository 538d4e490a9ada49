/**
 * Runs middleware as programs that are hooks of other systems. For Deno, Node and Bun.
 *
 * @module
 */
import process from "node:process";
import { text } from "node:stream/consumers";
import type { Middleware } from "../../../../mod.ts";
import { parseJson } from "../../kit/fields.ts";
import { linesOf } from "../../rpc_hooks/lines.ts";
import { export_hooks, type Exported, type ExportOptions } from "../mod.ts";

/**
 * Serves middleware as a hook process of PicoClaw, until the standard input ends. Messages are answered at the same time, and may be answered out of order.
 * Errors are written to the standard error, unless `onError` is given.
 *
 * The program is one line. PicoClaw runs it with a `command` under `hooks.processes`:
 *
 * ```ts
 * import { serveRpc } from "@jizai/jizai/middleware/export_hooks/stdio";
 * import { permissions } from "@jizai/jizai/middleware/permissions";
 *
 * if (import.meta.main) await serveRpc(permissions({ deny: ["delete_*"] }));
 * ```
 */
export async function serveRpc(use: Middleware | readonly Middleware[], options: ExportOptions = {}): Promise<void> {
  const { rpc } = export_hooks(use, { onError: writeError, ...options });
  const answering = new Set<Promise<void>>();
  for await (const line of linesOf(process.stdin)) {
    const answered = answer(line, rpc).finally(() => answering.delete(answered));
    answering.add(answered);
  }
  await Promise.all(answering);
}

async function answer(line: string, rpc: Exported["rpc"]): Promise<void> {
  const message = await rpc(parseJson(line));
  if (message) write(process.stdout, JSON.stringify(message));
}

/**
 * Runs middleware as a command hook of Claude: reads an event from the standard input and writes the output. If it fails, the error goes to `onError` (default:
 * the standard error), and the exit code is 1.
 *
 * The program is one line. Claude runs it with a `command` under `hooks`:
 *
 * ```ts
 * import { runCommand } from "@jizai/jizai/middleware/export_hooks/stdio";
 * import { permissions } from "@jizai/jizai/middleware/permissions";
 *
 * if (import.meta.main) await runCommand(permissions({ deny: ["delete_*"] }));
 * ```
 */
export async function runCommand(use: Middleware | readonly Middleware[], options: ExportOptions = {}): Promise<void> {
  const { onError = writeError } = options;
  const { command } = export_hooks(use, { ...options, onError });
  try {
    const event = JSON.parse(await text(process.stdin));
    write(process.stdout, JSON.stringify(await command(event)));
  } catch (error) {
    onError(error);
    process.exitCode = 1;
  }
}

function writeError(error: unknown): void {
  write(process.stderr, error instanceof Error ? error.stack ?? error.message : String(error));
}

/** Writes a line. The process does not exit before it is written. */
function write(output: NodeJS.WritableStream, text: string): void {
  output.write(`${text}\n`);
}
