/**
 * A program of this repository, as a process on this machine.
 *
 * @module
 */
import { killing } from "./killing.ts";

/** A program that serves, until it is disposed of. */
export interface Program extends AsyncDisposable {
  /** Requests a path of it. */
  request(path: string, init?: RequestInit): Promise<Response>;
  /** The next line that it prints that begins like this. Throws where it ends before. */
  line(start: string): Promise<string>;
  /** Has it end by itself, and gives its exit code. */
  end(): Promise<number>;
  /** Ends it with a SIGKILL. */
  kill(): Promise<void>;
}

/** Starts what the task `name` does, by Deno itself: whoever is between a task and its program does not pass on a SIGKILL. */
export async function started(name: string, env: Readonly<Record<string, string>>): Promise<Program> {
  const [deno, command = "", ...rest] = (await task(name)).split(" ");
  if (deno !== "deno") throw new Error(`Cannot start task ${name}: it does not begin with deno`);
  const process = new Deno.Command(Deno.execPath(), {
    args: [command, "--no-prompt", ...rest],
    env: { ...env, PORT: "0", NO_COLOR: "1" },
    stdout: "piped",
  }).spawn();
  const kill = killing(process);
  const lines = linesOf(process.stdout);

  async function line(start: string): Promise<string> {
    for (;;) {
      const { done, value } = await lines.next();
      if (done) throw new Error(`Cannot read what ${name} prints: it has ended`);
      if (value.startsWith(start)) return value;
    }
  }

  const [url] = (await line("The shop is at ")).match(/http:[^ ]+\d/) ?? [];
  return {
    request: (path, init) => fetch(`${url}${path}`, init),
    line,
    async end() {
      process.kill("SIGTERM");
      return (await process.status).code;
    },
    kill,
    async [Symbol.asyncDispose]() {
      await kill();
      await lines.return(undefined);
    },
  };
}

/** Runs the task of this name. */
async function task(name: string): Promise<string> {
  const config = (await Deno.readTextFile("deno.json")).replace(/^\s*\/\/.*$/gm, "");
  return JSON.parse(config).tasks[name];
}

async function* linesOf(output: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  let rest = "";
  for await (const text of output.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
