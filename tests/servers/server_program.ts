/**
 * Programs of this folder that serve. Their packages have locks of their own: Deno downloads everything in a lock, for each program it runs.
 *
 * @module
 */

/** A program that serves. It ends when it is disposed of. */
export interface ServerProgram extends AsyncDisposable {
  /** Requests a path of it. */
  request(path: string, init?: RequestInit): Promise<Response>;
}

/** Returns the arguments of Deno for the program of a name in this folder, with a lock of the same name, or of another one. */
export function programArguments(name: string, lock = name): readonly string[] {
  const here = (file: string) => new URL(file, import.meta.url).pathname;
  const options = ["--quiet", "--allow-all", "--no-config", "--lock", here(`${lock}.lock`), "--frozen"];
  return ["run", ...options, here(`${name}.js`)];
}

/** Starts a program that prints its address, and ends with its standard input. */
export async function servedBy(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<ServerProgram> {
  const process = new Deno.Command(Deno.execPath(), { args: [...args], env, stdin: "piped", stdout: "piped" }).spawn();
  const output = process.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const { value = "" } = await output.read();
  const client = Deno.createHttpClient({ poolMaxIdlePerHost: 0 }); // miniflare closes idle connections
  return {
    request: (path, init) => fetch(new URL(path, value.trim()), { ...init, client }),
    async [Symbol.asyncDispose]() {
      client.close();
      await process.stdin.close();
      while (!(await output.read()).done);
      await process.status;
    },
  };
}
