/**
 * Real processes that are killed or shut down while they execute runs. No client asks after it has sent a prompt: only the processes' calls of `recover()`
 * continue the runs.
 *
 * @module
 */
import type { Event } from "@jizai/jizai";
import { assertEquals } from "@std/assert";
import { type Addresses, type Database, openDatabase } from "../../../examples/fleet/database.ts";
import { placeOf } from "../../../src/core/journal.ts";
import { repairTranscript } from "../../../src/core/transcript.ts";
import { seeded } from "../seeded.ts";
import { checkResults } from "./laws.ts";
import { type Delays, delaysOf, type Line, type ProcessEnd } from "./process_delays.ts";

/** Options of `soakProcesses()`. */
export interface ProcessSoak {
  readonly seed: number;
  /** The number of processes that are killed or shut down. */
  readonly count: number;
  readonly addresses: Addresses;
  /** The file for the effects of tools. */
  readonly ledger: string;
}

/** The outcome of a soak. */
export interface ProcessFigures extends Delays {
  readonly runs: number;
  readonly kills: number;
  readonly shutdowns: number;
  readonly effects: number;
  readonly interrupted: number;
}

/** A run that was begun. */
interface Begun {
  readonly run: string;
  readonly session: string;
}

/** The processes, and the runs that they execute at the same time. */
const width = 3;
const runsAtOnce = 9;

/** Ends processes in the middle of runs. Throws if a run breaks an invariant. */
export async function soakProcesses({ seed, count, addresses, ledger }: ProcessSoak): Promise<ProcessFigures> {
  const { below } = seeded(seed);
  await Deno.writeTextFile(ledger, "");
  const database = await openDatabase(addresses);
  const begun: Begun[] = [];
  const ends: ProcessEnd[] = [];
  const exits: Promise<unknown>[] = [];
  let servers = await Promise.all(Array.from({ length: width }, () => server(ledger, addresses)));
  for (let open: readonly Begun[] = []; ends.length < count;) {
    open = await running(database, open);
    const more = await Promise.all(
      Array.from({ length: runsAtOnce - open.length }, (_, index) => prompt(servers[index % width]?.url ?? "")),
    );
    begun.push(...more);
    open = [...open, ...more];
    await sleep(below(1_500));
    const [chosen] = servers.splice(below(width), 1);
    if (!chosen) throw new Error("There is no server");
    const signal = below(2) === 0 ? "SIGKILL" : "SIGTERM";
    ends.push({ pid: chosen.process.pid, signal, at: Date.now() });
    chosen.process.kill(signal);
    exits.push(chosen.process.status);
    servers = [...servers, await server(ledger, addresses)];
  }
  for (let open: readonly Begun[] = begun, waited = 0; open.length > 0; waited++) {
    if (waited === 300) throw new Error(`Run "${open[0]?.run}" does not end`);
    await sleep(1_000);
    open = await running(database, open);
  }
  for (const { process } of servers) process.kill("SIGTERM");
  await Promise.all([...exits, ...servers.map(({ process }) => process.status)]);
  const lines = (await Deno.readTextFile(ledger)).trim().split("\n").map((line): Line => JSON.parse(line));
  const interrupted = await Promise.all(begun.map((each) => checkRun(database, each, lines)));
  assertEquals(lines.filter(({ what }) => what === "error"), []);
  return {
    runs: begun.length,
    kills: ends.filter(({ signal }) => signal === "SIGKILL").length,
    shutdowns: ends.filter(({ signal }) => signal === "SIGTERM").length,
    effects: lines.filter(({ what }) => what === "done").length,
    interrupted: interrupted.reduce((sum, each) => sum + each, 0),
    ...delaysOf(ends, lines),
  };
}

/** Starts a server, which prints its address. */
async function server(ledger: string, addresses: Addresses) {
  const path = new URL("../../bench/programs/soak_server.ts", import.meta.url).pathname;
  const env = Object.fromEntries(Object.entries(addresses).filter(([, value]) => value !== undefined));
  const args = ["run", "--no-prompt", "--no-check", "--allow-all", path, ledger];
  const process = new Deno.Command(Deno.execPath(), { args, env, stdin: "piped", stdout: "piped" }).spawn();
  const reader = process.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const { value = "" } = await reader.read();
  return { process, url: value.trim() };
}

/** Begins a run in the background. */
async function prompt(url: string): Promise<Begun> {
  const headers = { "content-type": "application/json", "prefer": "respond-async" };
  const response = await fetch(`${url}/runs`, { method: "POST", headers, body: JSON.stringify({ prompt: "Go" }) });
  return await response.json();
}

/** Returns the runs that have not ended. */
async function running({ store }: Database, runs: readonly Begun[]): Promise<readonly Begun[]> {
  const loaded = await Promise.all(runs.map(({ session }) => store.load(session)));
  return runs.filter((_, index) => loaded[index]?.run !== undefined);
}

/** Checks the record, the transcript and the effects of a run. Returns the number of its calls that were interrupted. */
async function checkRun({ store }: Database, { run, session }: Begun, lines: readonly Line[]): Promise<number> {
  const { messages = [], last } = await store.load(session) ?? {};
  const { key, run: number } = placeOf(run) ?? { key: "", run: 0 };
  const page = await store.journal.read(key, number, 0);
  const events = page?.lines.map((line): Event => JSON.parse(line)) ?? [];
  assertEquals([page?.first, page?.last, page?.over], [1, events.length, true]);
  assertEquals([last?.run, last?.event], [run, events.at(-1)]);
  const ends = events.flatMap(({ type }) => type.startsWith("run.") && type !== "run.started" ? [type] : []);
  assertEquals([ends, events.at(-1)?.type], [["run.finished"], "run.finished"]);
  assertEquals(repairTranscript(messages).problems, []);
  checkResults(events, messages);
  const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
  const effects = lines.filter((line) => line.run === run && line.what === "done");
  for (const { callId, status } of results) {
    const times = effects.filter(({ call }) => call === callId).length;
    const isOnce = callId.startsWith("send");
    if (status === "ok" && times === 0) throw new Error(`Call ${callId} of run ${run} was not done`);
    if (isOnce && times > 1) throw new Error(`Call ${callId} of run ${run} was done ${times} times`);
  }
  assertEquals(results.length, 4);
  return results.filter(({ status }) => status === "aborted").length;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
