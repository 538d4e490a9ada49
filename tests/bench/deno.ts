/**
 * Runs Deno in a process of its own.
 *
 * @module
 */

/** Runs `deno` with `args` and returns its standard output. Throws if it fails. */
export async function deno(args: readonly string[], input = ""): Promise<string> {
  const child = new Deno.Command(Deno.execPath(), { args: [...args], stdin: "piped", stdout: "piped" }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(input));
  await writer.close();
  const { success, stdout } = await child.output();
  if (!success) throw new Error(`Cannot run deno ${args[0]}: it exited with an error`);
  return new TextDecoder().decode(stdout);
}
