/**
 * The runtime of Cloudflare Workers, serving a file of `programs/streams/`.
 *
 * @module
 */
import { binary } from "../../platforms/workerd.ts";
import { deno, type Program, start } from "./processes.ts";

/** A Worker, and its port. */
export interface Worker extends AsyncDisposable {
  readonly port: number;
  readonly process: Program;
}

/** Serves a file of `programs/streams/` in a workerd on core 0. */
export async function workerd(name: string): Promise<Worker> {
  const path = new URL(`../programs/streams/${name}.ts`, import.meta.url).pathname;
  const script = await deno(["bundle", "--quiet", "--platform", "browser", path]);
  await Deno.mkdir("dist", { recursive: true });
  const folder = await Deno.makeTempDir({ dir: "dist" });
  await Deno.writeTextFile(`${folder}/config.capnp`, configOf(script));
  const process = await start([await binary(), "serve", "--control-fd=1", `${folder}/config.capnp`], 0);
  return {
    port: JSON.parse(await process.line()).port,
    process,
    async [Symbol.asyncDispose]() {
      await process[Symbol.asyncDispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

function configOf(script: string): string {
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "worker", worker = (
    modules = [(name = "worker.js", esModule = ${JSON.stringify(script)})],
    compatibilityDate = "2026-11-17",
  ))],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "worker")],
);`;
}
