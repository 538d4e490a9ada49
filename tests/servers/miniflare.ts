/**
 * Miniflare, the simulator of Cloudflare, as a process on this machine.
 *
 * @module
 */
import { bundled } from "../platforms/workerd.ts";
import { programArguments, servedBy, type ServerProgram } from "./server_program.ts";

/** Serves a Worker with a D1 database in `folder`, and with more options of miniflare. */
export async function miniflare(worker: string, folder: string, options: object = {}): Promise<ServerProgram> {
  const script = `${folder}/worker.js`;
  await Deno.writeTextFile(script, await bundled(worker));
  const all = JSON.stringify({ d1Persist: `${folder}/d1`, ...options });
  return await servedBy([...programArguments("miniflare_server"), script, all]);
}
