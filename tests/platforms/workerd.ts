/**
 * The runtime of Cloudflare Workers, as a process on this machine.
 *
 * @module
 */
import { killing } from "./killing.ts";

/** A served Worker, ended when it is disposed of. */
export interface Served extends AsyncDisposable {
  /** Its address. */
  readonly url: string;
  /** Requests a path of it. */
  request(path: string, init?: RequestInit): Promise<Response>;
  /** Ends workerd with SIGKILL. */
  kill(): Promise<void>;
}

/** The bindings of a Worker. */
export interface Bindings {
  /** The class of its Durable Objects. The binding has its name in capitals. Default: it has none. */
  readonly className?: string;
  /** Texts, by name. Default: none. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** Serves `script`, whose Durable Objects store in `folder`; it reaches this machine. */
export async function served(script: string, bindings: Bindings, folder: string): Promise<Served> {
  const config = `${folder}/config.capnp`;
  await Deno.writeTextFile(`${folder}/worker.js`, script);
  await Deno.writeTextFile(config, configOf(bindings, folder));
  const args = ["serve", "--control-fd=1", config];
  const process = new Deno.Command(await binary(), { args, stdout: "piped" }).spawn();
  const kill = killing(process);
  const port = await portOf(process.stdout);
  const url = `http://127.0.0.1:${port}/`;
  return {
    url,
    request: (path, init) => fetch(new URL(path, url), init),
    kill,
    [Symbol.asyncDispose]: kill,
  };
}

/** Bundles a module and its imports. */
export async function bundled(path: string): Promise<string> {
  return await output("bundle", "--quiet", "--platform", "browser", path);
}

/** Downloads workerd, and returns its path. It has a lock of its own, because Deno downloads all packages of a lock. */
export async function binary(): Promise<string> {
  const lock = new URL("deno.lock", import.meta.url).pathname;
  const code = `import workerd from "npm:workerd@1.20261117.1"; console.log(workerd.default);`;
  return (await output("eval", "--no-config", "--lock", lock, "--frozen", code)).trim();
}

/** Returns the output of Deno. */
async function output(...args: readonly string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args: [...args] }).output();
  const decoder = new TextDecoder();
  if (!success) throw new Error(`Cannot ${args[0]}: ${decoder.decode(stderr)}`);
  return decoder.decode(stdout);
}

function configOf({ className, settings = {} }: Bindings, folder: string): string {
  const texts = Object.entries(settings).map(([name, text]) => `(name = "${name}", text = ${JSON.stringify(text)})`);
  const namespaces = className === undefined
    ? ""
    : `(className = "${className}", uniqueKey = "${className}", enableSql = true)`;
  const objects = className === undefined
    ? []
    : [`(name = "${className.toUpperCase()}", durableObjectNamespace = "${className}")`];
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "internet", network = (allow = ["private"])),
    (name = "disk", disk = (path = ${JSON.stringify(folder)}, writable = true)),
    (name = "worker", worker = (
      modules = [(name = "worker.js", esModule = embed "worker.js")],
      compatibilityDate = "2026-11-17",
      durableObjectNamespaces = [${namespaces}],
      durableObjectStorage = (localDisk = "disk"),
      bindings = [${[...objects, ...texts].join(", ")}],
    )),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "worker")],
);`;
}

/** Returns the port in the first line of the output. */
async function portOf(lines: ReadableStream<Uint8Array>): Promise<number> {
  let text = "";
  for await (const chunk of lines.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (text.includes("\n")) return JSON.parse(text).port;
  }
  throw new Error(`Cannot serve: ${text}`);
}
