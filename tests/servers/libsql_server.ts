/**
 * libSQL with its real client, as a process on this machine.
 *
 * @module
 */
import { programArguments, servedBy, type ServerProgram } from "./server_program.ts";

/** Serves a database in `folder` that executes batches. */
export async function libsqlServer(folder: string): Promise<ServerProgram> {
  return await servedBy([...programArguments("libsql_server", "libsql_program"), await Deno.realPath(folder)]);
}
