/**
 * Runs middleware as programs that are hooks of other systems. For Deno.
 *
 * @module
 */
import type { Middleware } from "../../../../mod.ts";
import { parseJson } from "../../kit/fields.ts";
import { linesOf } from "../../rpc_hooks/lines.ts";
import { export_hooks, type Exported, type ExportOptions } from "../mod.ts";

/**
 * Serves middleware as a hook process of PicoClaw, until the standard input ends. Messages are answered at the same time, and may be answered out of order. Errors are written to
 * the standard error, unless `onError` is given.
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
  for await (const line of linesOf(Deno.stdin.readable.values())) {
    const answered = answer(line, rpc).finally(() => answering.delete(answered));
    answering.add(answered);
  }
  await Promise.all(answering);
}

async function answer(line: string, rpc: Exported["rpc"]): Promise<void> {
  const message = await rpc(parseJson(line));
  if (message) write(Deno.stdout, JSON.stringify(message));
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
    const event = await new Response(Deno.stdin.readable).json();
    write(Deno.stdout, JSON.stringify(await command(event)));
  } catch (error) {
    onError(error);
    Deno.exitCode = 1;
  }
}

function writeError(error: unknown): void {
  write(Deno.stderr, error instanceof Error ? error.stack ?? error.message : String(error));
}

function write(output: typeof Deno.stdout | typeof Deno.stderr, text: string): void {
  const bytes = new TextEncoder().encode(`${text}\n`);
  for (let written = 0; written < bytes.length;) written += output.writeSync(bytes.subarray(written));
}
