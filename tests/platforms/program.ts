/**
 * A program of this repository, as a process on this machine.
 *
 * @module
 */
import { killing } from "./killing.ts";

/** A served program, ended when it is disposed of. */
export interface Program extends AsyncDisposable {
  readonly url: string;
  /** Requests a path of it. */
  request(path: string, init?: RequestInit): Promise<Response>;
  /** Returns the next printed line with this beginning. Throws if the program ends first. */
  line(start: string): Promise<string>;
  /** Tells the program to end, and returns its exit code. */
  end(): Promise<number>;
  /** Ends the program with SIGKILL. */
  kill(): Promise<void>;
}

/** Runs the program of the task `name` directly: a task runner would not pass on SIGKILL. It serves on a free port, unless `env` has a PORT. */
export async function started(name: string, env: Readonly<Record<string, string>>): Promise<Program> {
  const process = new Deno.Command(Deno.execPath(), {
    args: await commandOf(name),
    env: { PORT: "0", NO_COLOR: "1", ...env },
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

  const [url = ""] = (await line("The shop is at ")).match(/http:[^ ]+\d/) ?? [];
  return {
    url,
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

/** Returns the arguments of Deno in a task. */
export async function commandOf(name: string): Promise<string[]> {
  const config = (await Deno.readTextFile("deno.json")).replace(/^\s*\/\/.*$/gm, "");
  const task: string = JSON.parse(config).tasks[name];
  const [deno, command = "", ...rest] = task.split(" ");
  if (deno !== "deno") throw new Error(`Cannot start task ${name}: it does not begin with deno`);
  return [command, "--no-prompt", ...rest];
}

/** Yields the lines that a program prints. */
export async function* linesOf(output: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  let rest = "";
  for await (const text of output.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
