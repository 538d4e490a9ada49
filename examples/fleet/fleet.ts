/**
 * The processes of the fleet, and the runs that each of them holds.
 *
 * @module
 */
import type { Target } from "./proxy.ts";

/** A process, as the page shows it. */
export interface Member {
  readonly name: string;
  readonly alive: boolean;
  /** The runs that it executes. A dead process has none. */
  readonly runs: readonly string[];
}

/** Processes that serve from one database. */
export interface Fleet {
  /** Returns the processes that serve. */
  targets(): readonly Target[];
  /** Returns all processes. */
  members(): readonly Member[];
  /** Kills a process with SIGKILL. Returns whether it was alive. */
  kill(name: string): Promise<boolean>;
  /** Ends all processes. */
  end(): Promise<void>;
}

/** A running process. */
interface Running {
  readonly name: string;
  readonly runs: Set<string>;
  readonly process: Deno.ChildProcess;
  /** Its address, once it serves. */
  url: string | undefined;
  alive: boolean;
}

/** The arguments of a process. */
const args = [
  "run",
  "--no-prompt",
  "--allow-net",
  "--allow-env",
  "--allow-sys",
  "--allow-read",
  "--allow-write",
  new URL("server.ts", import.meta.url).pathname,
];

/** Starts a process for each name, and resolves when all of them serve. `onChange` is called when a process begins or ends a run, or dies. */
export async function startFleet(
  names: readonly string[],
  onChange: (members: readonly Member[]) => void,
): Promise<Fleet> {
  const all = names.map((name): Running => ({
    name,
    runs: new Set(),
    process: new Deno.Command(Deno.execPath(), { args, stdin: "piped", stdout: "piped" }).spawn(),
    url: undefined,
    alive: true,
  }));
  const members = () => all.map(({ name, alive, runs }) => ({ name, alive, runs: alive ? [...runs] : [] }));
  const serving = all.map(() => Promise.withResolvers<void>());
  const ended = all.map(async (running, index) => {
    for await (const [word, value = ""] of wordsOf(running.process.stdout)) {
      if (word === "serves") running.url = value;
      if (word === "holds") running.runs.add(value);
      if (word === "released") running.runs.delete(value);
      if (running.url !== undefined) serving[index]?.resolve();
      onChange(members());
    }
    await running.process.status;
    running.alive = false;
    serving[index]?.reject(new Error(`Cannot start process ${running.name}: it has ended`));
    onChange(members());
  });
  await Promise.all(serving.map(({ promise }) => promise));

  return {
    targets: () => all.flatMap(({ name, alive, url }) => alive && url !== undefined ? [{ name, url }] : []),
    members,
    async kill(name) {
      const index = all.findIndex((running) => running.name === name && running.alive);
      all[index]?.process.kill("SIGKILL");
      await ended[index];
      return index >= 0;
    },
    async end() {
      for (const { alive, process } of all) if (alive) await process.stdin.close();
      await Promise.all(ended);
    },
  };
}

/** Yields the words of each line that a process prints. */
async function* wordsOf(output: ReadableStream<Uint8Array>): AsyncGenerator<readonly string[]> {
  let rest = "";
  for await (const text of output.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield line.split(" ");
  }
}
