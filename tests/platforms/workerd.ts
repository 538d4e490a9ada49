/**
 * The runtime of Cloudflare Workers, as a process on this machine.
 *
 * @module
 */
/** A Worker that is being served. */
export interface Served extends AsyncDisposable {
  /** Requests a path of it. */
  fetch(path: string): Promise<Response>;
}

/** Serves `script`, in which the class `className` is that of Durable Objects: they are bound by its name in capitals, and store in `folder`. */
export async function served(script: string, className: string, folder: string): Promise<Served> {
  const config = `${folder}/config.capnp`;
  await Deno.writeTextFile(config, configOf(script, className, folder));
  const args = ["serve", "--control-fd=1", config];
  const process = new Deno.Command(await binary(), { args, stdout: "piped" }).spawn();
  const port = await portOf(process.stdout);
  return {
    fetch: (path) => fetch(`http://127.0.0.1:${port}${path}`),
    async [Symbol.asyncDispose]() {
      process.kill("SIGKILL");
      await process.status;
    },
  };
}

/** A module of this folder with all that it imports, as one text. */
export async function bundled(name: string): Promise<string> {
  return await output("bundle", "--quiet", "--platform", "browser", new URL(name, import.meta.url).pathname);
}

/**
 * Where workerd is. It has a lock of its own, since Deno downloads whatever is in a lock, for whatever it runs. Its newer versions ask for a
 * package that there is not.
 */
async function binary(): Promise<string> {
  const lock = new URL("deno.lock", import.meta.url).pathname;
  const code = `import workerd from "npm:workerd@1.20261023.1"; console.log(workerd.default);`;
  return (await output("eval", "--no-config", "--lock", lock, "--frozen", code)).trim();
}

/** What Deno prints. */
async function output(...args: readonly string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args: [...args] }).output();
  const decoder = new TextDecoder();
  if (!success) throw new Error(`Cannot ${args[0]}: ${decoder.decode(stderr)}`);
  return decoder.decode(stdout);
}

function configOf(script: string, className: string, folder: string): string {
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "disk", disk = (path = ${JSON.stringify(folder)}, writable = true)),
    (name = "worker", worker = (
      modules = [(name = "worker.js", esModule = ${JSON.stringify(script)})],
      compatibilityDate = "2026-10-01",
      durableObjectNamespaces = [(className = "${className}", uniqueKey = "${className}", enableSql = true)],
      durableObjectStorage = (localDisk = "disk"),
      bindings = [(name = "${className.toUpperCase()}", durableObjectNamespace = "${className}")],
    )),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "worker")],
);`;
}

/** The port that is told on the first line. */
async function portOf(lines: ReadableStream<Uint8Array>): Promise<number> {
  let text = "";
  for await (const chunk of lines.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (text.includes("\n")) return JSON.parse(text).port;
  }
  throw new Error(`Cannot serve: ${text}`);
}
