/**
 * Processes: starts a command in a process group of its own and collects its output. For Deno, Node and Bun.
 *
 * @module
 */
import process from "node:process";
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { parseJson } from "./answers.ts";
import { isObject, startError, startTimer } from "../../../src/core/kit.ts";

/** A command: a line for a shell, or a program with arguments. */
interface CommandLine {
  readonly command: string;
  readonly args?: readonly string[] | undefined;
  readonly shell?: string | undefined;
  /** Receives the output so far, each time that there is more. */
  readonly onOutput?: ((text: string) => void) | undefined;
}

/** A process that has exited. */
export interface Exited {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A process that runs. */
interface Running {
  /** Its first line of output, as soon as it is complete; undefined if it exits without one. */
  readonly line: Promise<string | undefined>;
  /** Rejects if the command cannot be started. */
  readonly exited: Promise<Exited>;
  /** Kills the process and the processes that it has started. */
  kill(): void;
}

/** The folder and the variables that commands run with. */
export interface Place {
  readonly cwd: string;
  /** Variables in addition to the environment of this process. */
  readonly env: Readonly<Record<string, string>>;
}

/** The characters of each output that are kept. */
const maxBytes = 1_000_000;
/** Milliseconds after the exit in which output is read: a process that the command started may keep its output open. */
const patience = 200;

/** Throws a `TypeError` if the directory in which commands run does not exist: every command would fail, and block nothing. */
export function expectDirectory(cwd: string): void {
  try {
    if (statSync(cwd).isDirectory()) return;
  } catch (error) {
    if (isDenied(error)) return; // it may exist; if it does not, the command fails later
  }
  throw new TypeError(`the directory "${cwd}" does not exist; expected one in which commands can run`);
}

/** Starts a command and writes `input` to its standard input. The command is killed when `signal` aborts. */
export function start(command: CommandLine, input: string, place: Place, signal: AbortSignal): Running {
  signal.throwIfAborted();
  const line = Promise.withResolvers<string | undefined>();
  let child: ChildProcessWithoutNullStreams | undefined;
  const kill = () => killAll(child);
  signal.addEventListener("abort", kill, { once: true });

  async function run(): Promise<Exited> {
    let missing: unknown;
    for (const [program, args] of programsOf(command, place)) {
      try {
        child = spawn(program, args, { cwd: place.cwd, env: environmentOf(place), detached: true });
        return await outcomeOf(child, input, (text) => {
          command.onOutput?.(text);
          const end = text.indexOf("\n");
          if (end >= 0) line.resolve(text.slice(0, end));
        });
      } catch (error) {
        if (!hasCode(error, "ENOENT")) throw startError(program, error);
        missing ??= error;
      }
    }
    throw missing;
  }

  const exited = run().finally(() => {
    signal.removeEventListener("abort", kill);
    line.resolve(undefined);
  });
  exited.catch(() => {}); // the caller, which awaits it, reports it
  return { line: line.promise, exited, kill };
}

/** Returns the programs to try: the second one if the first does not exist. */
function programsOf({ command, args, shell }: CommandLine, { env }: Place): readonly (readonly [string, string[]])[] {
  const filled = (text: string) => text.replace(/\$\{(\w+)\}/g, (whole, name) => env[name] ?? whole);
  if (args) return [[filled(command), args.map(filled)]];
  if (shell === "powershell") return [["pwsh", ["-NoProfile", "-Command", filled(command)]]];
  const shells = shell === undefined ? ["bash", "sh"] : [shell];
  return shells.map((shell) => [shell, ["-c", command]]);
}

/** Returns the environment of a child: that of this process, and `env`. On Deno, this needs the permission to read the environment. */
export function environmentOf({ env }: Pick<Place, "env">): Record<string, string | undefined> {
  return { ...process.env, ...env };
}

function outcomeOf(
  child: ChildProcessWithoutNullStreams,
  input: string,
  onOutput: (text: string) => void,
): Promise<Exited> {
  return new Promise((resolve, reject) => {
    const stdout = collect(child.stdout, onOutput);
    const stderr = collect(child.stderr);
    let timer: ReturnType<typeof startTimer>;
    const finish = (code: number | null) => {
      clearTimeout(timer);
      child.stdout.destroy();
      child.stderr.destroy();
      resolve({ code: code ?? 128, stdout: stdout(), stderr: stderr() });
    };
    child.once("error", reject);
    child.once("exit", (code) => timer = startTimer(() => finish(code), patience));
    child.once("close", finish);
    child.stdin.on("error", (error) => {
      if (!hasCode(error, "EPIPE") && !hasCode(error, "ECONNRESET")) reject(error); // a command need not read its input
    });
    child.stdin.end(input);
  });
}

/** Collects the text of an output; `onText` receives the text so far. */
function collect(output: NodeJS.ReadableStream, onText: (text: string) => void = () => {}): () => string {
  const decoder = new TextDecoder();
  let text = "";
  output.on("data", (chunk: Uint8Array) => {
    if (text.length < maxBytes) {
      onText(text += decoder.decode(chunk, { stream: true }).slice(0, maxBytes - text.length));
    }
  });
  return () => text;
}

/**
 * Kills a command: its process group, and the groups of all processes in its session, beneath it, and in the sessions that these have begun. A process that has
 * begun a session of its own, and whose parent has exited, is not reached.
 */
function killAll(child: ChildProcessWithoutNullStreams | undefined): void {
  if (child?.pid === undefined) return;
  send(child.pid, "SIGSTOP"); // so that it starts no process in the meantime
  const sessions = new Set([child.pid]);
  const groups = groupsOf(sessions);
  for (const group of new Set([child.pid, ...groups])) send(group, "SIGKILL");
  if (sessions.size > 1) { for (const group of groupsOf(sessions)) send(group, "SIGKILL"); } // started since
}

function send(group: number, signal: "SIGSTOP" | "SIGKILL"): void {
  try {
    process.kill(-group, signal);
  } catch (error) {
    if (!hasCode(error, "ESRCH") && !hasCode(error, "EPERM")) throw error; // it has exited, or belongs to another user
  }
}

/** Prints a line for each process: as Linux has it, or else by `ps`. */
const listing = "[ -r /proc/self/stat ] && exec cat /proc/[0-9]*/stat; exec ps -A -o pid=,ppid=,pgid=,sess=";

/** Returns the process groups in `sessions` and beneath their leaders. Adds the sessions of these processes. */
function groupsOf(sessions: Set<number>): readonly number[] {
  const all = processes();
  const found = new Map<number, number>();
  for (let size = -1; size < found.size;) {
    size = found.size;
    for (const [pid, parent, group, session] of all) {
      if (!sessions.has(session) && !sessions.has(pid) && !found.has(parent)) continue;
      found.set(pid, group);
      if (session === pid) sessions.add(session);
    }
  }
  return [...new Set(found.values())];
}

/** A process: its id, its parent, its group and its session. */
type Process = readonly [pid: number, parent: number, group: number, session: number];

/** Returns the processes of this machine except this one; none if they cannot be listed. */
function processes(): readonly Process[] {
  try {
    const { stdout } = spawnSync("sh", ["-c", listing], { encoding: "utf8", timeout: 2_000, maxBuffer: 64 * maxBytes });
    return String(stdout).split("\n").flatMap((line): Process[] => {
      const numbers = line.replace(/\(.*\) \S/s, "").trim().split(/\s+/).map(Number); // Linux has the name and the state in between
      const [pid = 0, parent = 0, group = 0, session = 0] = numbers;
      return pid > 1 && group > 1 && pid !== process.pid ? [[pid, parent, group, session]] : [];
    });
  } catch (error) {
    if (isDenied(error) || hasCode(error, "ENOENT")) return []; // the group of the command is killed all the same
    throw error;
  }
}

/** Whether the system, or Deno, denied the permission to read. */
function isDenied(error: unknown): boolean {
  return hasCode(error, "EACCES") || hasCode(error, "EPERM") || (error instanceof Error && error.name === "NotCapable");
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && isObject(error) && error.code === code;
}

// Finds the JSON object in the output of a command, which may be surrounded by other text.

/** Creates the error for a handler that failed. */
export function commandError(reason: string, name: string): Error {
  return new Error(`Cannot use the output of the hook: ${reason} (${name})`);
}

/** The object in an output, or the reason why an output that looks like JSON is invalid. */
interface ReadJson {
  readonly json?: Readonly<Record<string, unknown>>;
  readonly broken?: string;
}

/** Finds the JSON object in an output: all of it, or else the lines of it that are an object. */
export function readJson(
  written: string,
  isWhole: boolean,
  { wholeOutput }: { readonly wholeOutput: boolean },
): ReadJson {
  const text = isWhole ? written : linesOfObject(written);
  if (!text.startsWith("{") || !text.endsWith("}")) return {};
  const json = parseJson(text);
  if (isObject(json)) return { json };
  return text === written && !wholeOutput ? { broken: "expected JSON, got text that only looks like it" } : {};
}

/** Returns the lines from the first one that begins an object to the last one that ends one; empty without such lines. */
function linesOfObject(written: string): string {
  const start = written.search(/^\{/m);
  let end = written.lastIndexOf("}");
  while (end > start && !/^(?:[\r\n\u2028\u2029]|$)/.test(written.slice(end + 1, end + 2))) {
    end = written.lastIndexOf("}", end - 1);
  }
  return start < 0 || end < start ? "" : written.slice(start, end + 1);
}
