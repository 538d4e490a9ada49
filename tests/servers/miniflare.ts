/**
 * Miniflare, the simulator of Cloudflare, as a process on this machine.
 *
 * @module
 */
import { bundled } from "../platforms/workerd.ts";

/** A served Worker. It ends when it is disposed of. */
export interface Miniflare extends AsyncDisposable {
  /** Requests a path of it. */
  request(path: string, init?: RequestInit): Promise<Response>;
}

/** The path of a file of this folder. */
const here = (name: string) => new URL(name, import.meta.url).pathname;

/** Returns the arguments for a program of this folder, which reads a lock of its own: Deno downloads everything in a lock, for each program it runs. */
export function programArguments(name: string): readonly string[] {
  return [
    "run",
    "--quiet",
    "--allow-all",
    "--no-config",
    "--lock",
    here(`${name}.lock`),
    "--frozen",
    here(`${name}.js`),
  ];
}

/** Serves a Worker with a D1 database in `folder`, and with more options of miniflare. */
export async function miniflare(worker: string, folder: string, options: object = {}): Promise<Miniflare> {
  const script = `${folder}/worker.js`;
  await Deno.writeTextFile(script, await bundled(worker));
  const args = [
    ...programArguments("miniflare_server"),
    script,
    JSON.stringify({ d1Persist: `${folder}/d1`, ...options }),
  ];
  const process = new Deno.Command(Deno.execPath(), { args, stdin: "piped", stdout: "piped" }).spawn();
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
