/**
 * A Restate server for tests, from npm.
 *
 * @module
 */
import { folder } from "../platforms/folder.ts";

const lock = new URL("restate_server.lock", import.meta.url).pathname;

/** Returns a command that runs the server. It has a lock of its own, because Deno downloads all packages of a lock. */
function command(args: readonly string[], options: Deno.CommandOptions = {}): Deno.Command {
  const program = ["run", "--quiet", "--allow-all", "--no-config", "--lock", lock, "--frozen"];
  return new Deno.Command(Deno.execPath(), {
    ...options,
    args: [...program, "npm:@restatedev/restate-server@1.7.12", ...args],
    env: {
      RESTATE_DISABLE_TELEMETRY: "true",
      RESTATE_LOG_DISABLE_ANSI_CODES: "true",
      RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE: "64MB",
    },
  });
}

/** Whether the server cannot be installed, or does not run on this machine. */
export async function isRestateMissing(): Promise<boolean> {
  try {
    return !(await command(["--version"], { stdout: "null", stderr: "null" }).output()).success;
  } catch {
    return true; // programs may not be started
  }
}

/** A running server. It ends when it is disposed of. */
export interface RestateServer extends AsyncDisposable {
  /** The address at which services are called. */
  readonly ingress: string;
  /** Lets it call the services at an address. */
  register(uri: string): Promise<void>;
}

/** Starts a server on free ports. */
export async function restateServer(): Promise<RestateServer> {
  const disk = await folder();
  const base = `${await Deno.realPath(disk.path)}/restate`;
  const args = ["--no-logo", "--use-random-ports", "true", "--bind-ip", "127.0.0.1", "--listen-mode", "tcp"];
  const process = command([...args, "--base-dir", base], { stdout: "piped", stderr: "null" }).spawn();
  const output = process.stdout.pipeThrough(new TextDecoderStream()).getReader();

  /** Reads the output until it contains a pattern. Returns the first group. */
  async function until(pattern: RegExp, text = ""): Promise<string> {
    const [, found] = pattern.exec(text) ?? [];
    if (found !== undefined) return found;
    const { done, value } = await output.read();
    if (done) throw new Error(`Cannot start Restate: it printed ${text}`);
    return await until(pattern, text + value);
  }

  const ports = await until(/Ingress HTTP listening[^]*?server\.port: (\d+[^]*Admin API starting on: \S+)/);
  const [, ingress, admin] = /^(\d+)[^]*on: (\S+)$/.exec(ports) ?? [];
  const drained = (async () => {
    while (!(await output.read()).done);
  })();
  return {
    ingress: `http://127.0.0.1:${ingress}`,
    async register(uri) {
      const body = JSON.stringify({ uri, use_http_11: true });
      const headers = { "content-type": "application/json" };
      const response = await fetch(`${admin}deployments`, { method: "POST", headers, body });
      const text = await response.text();
      if (!response.ok) throw new Error(`Cannot register ${uri}: ${text}`);
    },
    async [Symbol.asyncDispose]() {
      process.kill("SIGTERM");
      await drained;
      await process.status;
      await disk[Symbol.asyncDispose]();
    },
  };
}
