/**
 * libSQL with its real client, as a process on this machine.
 *
 * @module
 */
import { programArguments } from "./server_program.ts";

/** Starts a program that connects to `port`, and executes batches on a database in `folder` until the connection closes. Resolves when it has ended. */
export async function libsqlBatches(folder: string, port: number): Promise<void> {
  const args = [...programArguments("libsql_server", "libsql_program"), await Deno.realPath(folder), `${port}`];
  await new Deno.Command(Deno.execPath(), { args, stdin: "null" }).spawn().status;
}
