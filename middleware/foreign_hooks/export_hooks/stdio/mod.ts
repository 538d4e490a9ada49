/**
 * Middleware as programs that are hooks of other systems, on Deno.
 *
 * @module
 */
import type { Middleware } from "../../../../mod.ts";
import { parseJson } from "../../kit/fields.ts";
import { linesOf } from "../../rpc_hooks/lines.ts";
import { export_hooks, type Exported, type ExportOptions } from "../mod.ts";

/**
 * Serves middleware as a hook process of PicoClaw, until the standard input ends. Messages are answered as soon as they can be, in any order. What goes wrong is
 * written to the standard error, unless `onError` says otherwise.
 *
 * The program is one line, and PicoClaw is told of it under `hooks.processes`, by the `command` that runs it:
 *
 * ```ts
 * import { serveRpc } from "@jizai/jizai/middleware/export_hooks/stdio";
 * import { permissions } from "@jizai/jizai/middleware/permissions";
 *
 * if (import.meta.main) await serveRpc(permissions({ deny: ["delete_*"] }));
 * ```
 */
export async function serveRpc(use: Middleware | readonly Middleware[], options: ExportOptions = {}): Promise<void> {
  const { rpc } = export_hooks(use, { onError: complain, ...options });
  const answering = new Set<Promise<void>>();
  for await (const line of linesOf(Deno.stdin.readable.values())) {
    const answered = answer(line, rpc).finally(() => answering.delete(answered));
    answering.add(answered);
  }
  await Promise.all(answering);
}

async function answer(line: string, rpc: Exported["rpc"]): Promise<void> {
  const said = await rpc(parseJson(line));
  if (said) write(Deno.stdout, JSON.stringify(said));
}

/**
 * Runs middleware as a command hook of Claude: reads an event from the standard input, and writes what is said to it. Where it fails it writes why to the
 * standard error, unless `onError` says otherwise, and its exit code is 1.
 *
 * The program is one line, and Claude is told of it under `hooks`, by the `command` that runs it:
 *
 * ```ts
 * import { runCommand } from "@jizai/jizai/middleware/export_hooks/stdio";
 * import { permissions } from "@jizai/jizai/middleware/permissions";
 *
 * if (import.meta.main) await runCommand(permissions({ deny: ["delete_*"] }));
 * ```
 */
export async function runCommand(use: Middleware | readonly Middleware[], options: ExportOptions = {}): Promise<void> {
  const { onError = complain } = options;
  const { command } = export_hooks(use, { ...options, onError });
  try {
    const event = await new Response(Deno.stdin.readable).json();
    write(Deno.stdout, JSON.stringify(await command(event)));
  } catch (error) {
    onError(error);
    Deno.exitCode = 1;
  }
}

function complain(error: unknown): void {
  write(Deno.stderr, error instanceof Error ? error.stack ?? error.message : String(error));
}

function write(output: typeof Deno.stdout | typeof Deno.stderr, text: string): void {
  const bytes = new TextEncoder().encode(`${text}\n`);
  for (let written = 0; written < bytes.length;) written += output.writeSync(bytes.subarray(written));
}
