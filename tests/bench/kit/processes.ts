/**
 * Processes that a measure starts, and reads from outside.
 *
 * @module
 */

/** A program of `programs/` in a process of its own, until it is disposed of. */
export interface Program extends AsyncDisposable {
  /** Returns the next line that it prints. */
  line(): Promise<string>;
  /** Writes a line to its standard input. */
  write(text: string): Promise<void>;
  /** Returns the peak memory of the process in megabytes. NaN without `/proc`. */
  peakMemory(): Promise<number>;
  /** Returns the memory of the process in megabytes. NaN without `/proc`. */
  memory(): Promise<number>;
}

/** Starts a program of `programs/`, on one core if `taskset` and that core exist. */
export async function program(name: string, args: readonly string[], core?: number): Promise<Program> {
  const path = new URL(`../programs/${name}`, import.meta.url).pathname;
  return await start([Deno.execPath(), "run", "--no-prompt", "--allow-net=127.0.0.1", path, ...args], core);
}

/** Starts a command, on one core if `taskset` and that core exist. */
export async function start(command: readonly string[], core?: number): Promise<Program> {
  const [executable = "", ...args] = core !== undefined && await canPin(core)
    ? ["taskset", "--cpu-list", String(core), ...command]
    : command;
  const child = new Deno.Command(executable, { args, stdin: "piped", stdout: "piped" }).spawn();
  const lines = linesOf(child.stdout);
  let running = true;
  const exit = child.status.finally(() => {
    running = false;
  });
  const writer = child.stdin.getWriter();
  return {
    async line() {
      const { value, done } = await lines.next();
      if (done) throw new Error(`Cannot read from ${command.join(" ")}: it exited`);
      return value;
    },
    write: (text) => writer.write(new TextEncoder().encode(`${text}\n`)),
    peakMemory: () => memoryOf(child.pid, "VmHWM"),
    memory: () => memoryOf(child.pid, "VmRSS"),
    async [Symbol.asyncDispose]() {
      if (running) child.kill("SIGKILL");
      await exit;
      await lines.return(undefined);
      await writer.abort().catch((error) => ifBroken(error));
    },
  };
}

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

/** Whether `taskset` can run a command on this core. */
async function canPin(core: number): Promise<boolean> {
  try {
    const args = ["--cpu-list", String(core), "true"];
    return (await new Deno.Command("taskset", { args, stdout: "null", stderr: "null" }).output()).success;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Reads a field of `/proc/PID/status`, in megabytes. Runs `cat`, because Deno itself may read `/proc` only with every permission. */
async function memoryOf(pid: number, field: "VmHWM" | "VmRSS"): Promise<number> {
  const command = new Deno.Command("cat", { args: [`/proc/${pid}/status`], stderr: "null" });
  const text = new TextDecoder().decode((await command.output()).stdout);
  return Number(text.match(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m"))?.[1] ?? NaN) / 1_024;
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}

/** Passes over the failure of a pipe whose process was killed. */
function ifBroken(error: unknown): void {
  if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
}
