/**
 * Processes: a command that is given a text, and what it says until it exits.
 *
 * @module
 */
import { cancellationOf, withGracePeriod } from "../../../src/core/kit.ts";
import type { CommandHook } from "./settings.ts";

/** A process that has exited. */
export interface Exited {
  /** Its exit code. */
  readonly code: number;
  /** What it wrote for whoever runs it. */
  readonly stdout: string;
  /** What it wrote for people. */
  readonly stderr: string;
}

/** A process that runs. */
export interface Running {
  /** The first line that it writes, as soon as it has; nothing where it exits without one. */
  readonly line: Promise<string | undefined>;
  /** What comes of it. */
  readonly exited: Promise<Exited>;
  /** Kills it, and whatever it has started. */
  kill(): void;
}

/** Where commands run. */
export interface Place {
  /** The directory. */
  readonly cwd: string;
  /** Variables beside those of this process. */
  readonly env: Readonly<Record<string, string>>;
}

/** Characters of each output that are kept. */
const most = 1_000_000;
/** Milliseconds after the exit in which what was written is read: whoever it has started may hold its outputs open. */
const patience = 200;

/** Starts a command, in a group of its own, and gives it `input`. It is killed when `signal` aborts; where it has, this throws its reason. */
export function start(command: CommandHook, input: string, place: Place, signal: AbortSignal): Running {
  signal.throwIfAborted();
  const child = spawn(command, place);
  const end = () => kill(child);
  signal.addEventListener("abort", end, { once: true });
  const line = Promise.withResolvers<string | undefined>();
  const stdout = reading(child.stdout, (text) => {
    const end = text.indexOf("\n");
    if (end >= 0) line.resolve(text.slice(0, end));
  });
  const stderr = reading(child.stderr);

  async function exit(): Promise<Exited> {
    const fed = feed(child.stdin, input);
    const { code } = await child.status;
    const [out, err] = await Promise.all([stdout.rest(), stderr.rest(), fed]);
    return { code, stdout: out, stderr: err };
  }

  const exited = exit().finally(() => {
    signal.removeEventListener("abort", end);
    line.resolve(undefined);
  });
  exited.catch(() => {}); // whoever waits for it is told
  return { line: line.promise, exited, kill: end };
}

function spawn({ command, args, shell }: CommandHook, { cwd, env }: Place): Deno.ChildProcess {
  const options = { cwd, env, detached: true, stdin: "piped", stdout: "piped", stderr: "piped" } as const;
  const run = (program: string, args: readonly string[]) =>
    new Deno.Command(program, { ...options, args: [...args] }).spawn();
  const filled = (text: string) => text.replace(/\$\{(\w+)\}/g, (whole, name) => env[name] ?? whole);
  if (args) return run(filled(command), args.map(filled));
  if (shell === "powershell") return run("pwsh", ["-NoProfile", "-Command", filled(command)]);
  try {
    return run(shell ?? "bash", ["-c", command]);
  } catch (error) {
    if (shell === undefined && error instanceof Deno.errors.NotFound) return run("sh", ["-c", command]);
    throw error;
  }
}

/** A process that exits without reading what it is given has missed nothing. */
async function feed(stdin: WritableStream<Uint8Array>, input: string): Promise<void> {
  const writer = stdin.getWriter();
  try {
    await writer.write(new TextEncoder().encode(input));
    await writer.close();
  } catch (error) {
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
  }
}

/** Reads an output while it is written; `hear` is told what there is so far. */
function reading(output: ReadableStream<Uint8Array<ArrayBuffer>>, hear: (text: string) => void = () => {}) {
  const reader = output.pipeThrough(new TextDecoderStream()).getReader();
  const over = new AbortController();
  let text = "";
  async function read(): Promise<void> {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      if (text.length < most) hear(text += value.slice(0, most - text.length));
    }
  }
  const all = withGracePeriod(read(), cancellationOf(over.signal), patience, () => reader.cancel());
  all.catch(() => {}); // whoever takes the rest is told
  return {
    /** All of it, now that the process has exited. */
    async rest(): Promise<string> {
      over.abort();
      await all.catch((error) => {
        if (error !== over.signal.reason) throw error;
      });
      return text;
    },
  };
}

function kill({ pid }: Deno.ChildProcess): void {
  try {
    Deno.kill(-pid, "SIGKILL"); // the group
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error; // it has exited
  }
}
