/**
 * The same load over real sockets: 100 connections, 200 deltas each with a macrotask before each delta. Server and client are processes on a core each.
 *
 * @module
 */
import { count } from "../kit/floor.ts";
import type { Measure } from "../kit/measure.ts";
import { type Program, program } from "../kit/processes.ts";
import { median } from "../kit/stopwatch.ts";
import { workerd } from "../kit/workerd.ts";

const names = ["floor", "hono", "jizai"] as const;
type Name = typeof names[number];

/** A server, and its port. */
interface Server extends AsyncDisposable {
  readonly port: number;
  readonly process: Program;
}

/** The client's measurements of a server. */
interface Load {
  /** Thousands of deltas per second. */
  readonly deltas: number;
  /** Milliseconds. */
  readonly firstByte: number;
  /** The server's peak, in megabytes. */
  readonly memory: number;
}

/** Loads the floor, Hono's `streamSSE` and Jizai on Deno; then each of them once on workerd. */
export async function socketMeasures(): Promise<readonly Measure[]> {
  const { floor, hono, jizai } = await loads(onDeno, 3);
  return [
    { what: "over sockets, the floor's throughput", figure: floor.deltas, unit: "k deltas/s" },
    { what: "... throughput of Hono's streamSSE, of the floor", figure: hono.deltas / floor.deltas, unit: "x" },
    { what: "... throughput of Jizai, of the floor", figure: jizai.deltas / floor.deltas, atLeast: 0.9, unit: "x" },
    { what: "... the floor's first byte", figure: floor.firstByte, unit: "ms" },
    { what: "... first byte of Hono's streamSSE, of the floor", figure: hono.firstByte / floor.firstByte, unit: "x" },
    {
      what: "... first byte of Jizai, of the floor",
      figure: jizai.firstByte / floor.firstByte,
      atMost: 1.5,
      unit: "x",
    },
    { what: "... the floor's peak memory", figure: floor.memory, unit: "MB" },
    { what: "... peak memory of Hono's streamSSE, beyond the floor", figure: hono.memory - floor.memory, unit: "MB" },
    { what: "... peak memory of Jizai, beyond the floor", figure: jizai.memory - floor.memory, atMost: 25, unit: "MB" },
  ];
}

/** The same load on workerd. Its figures are only printed. */
export async function workerdMeasures(): Promise<readonly Measure[]> {
  const { floor, hono, jizai } = await loads(workerd, 1);
  return [
    { what: "on workerd, the floor's throughput", figure: floor.deltas, unit: "k deltas/s" },
    { what: "... throughput of Hono's streamSSE, of the floor", figure: hono.deltas / floor.deltas, unit: "x" },
    { what: "... throughput of Jizai, of the floor", figure: jizai.deltas / floor.deltas, unit: "x" },
    { what: "... the floor's first byte", figure: floor.firstByte, unit: "ms" },
    { what: "... first byte of Hono's streamSSE, of the floor", figure: hono.firstByte / floor.firstByte, unit: "x" },
    { what: "... first byte of Jizai, of the floor", figure: jizai.firstByte / floor.firstByte, unit: "x" },
    { what: "... peak memory of Jizai, beyond the floor", figure: jizai.memory - floor.memory, unit: "MB" },
  ];
}

/** Loads each server in turn, `rounds` times, and returns the medians. */
async function loads(serve: (name: Name) => Promise<Server>, rounds: number): Promise<Record<Name, Load>> {
  const all: Record<Name, Load[]> = { floor: [], hono: [], jizai: [] };
  for (let round = 0; round < rounds; round++) {
    for (const name of names) all[name].push(await loaded(await serve(name)));
  }
  return { floor: medianOf(all.floor), hono: medianOf(all.hono), jizai: medianOf(all.jizai) };
}

async function loaded(server: Server): Promise<Load> {
  await using served = server;
  await using client = await program("client.ts", [String(served.port)], 1);
  const { streamsPerSecond, firstByte } = JSON.parse(await client.line());
  return { deltas: streamsPerSecond * count / 1_000, firstByte, memory: await served.process.peakMemory() };
}

async function onDeno(name: Name): Promise<Server> {
  const process = await program("server.ts", [name], 0);
  return { port: Number(await process.line()), process, [Symbol.asyncDispose]: () => process[Symbol.asyncDispose]() };
}

function medianOf(loads: readonly Load[]): Load {
  return {
    deltas: median(loads.map(({ deltas }) => deltas)),
    firstByte: median(loads.map(({ firstByte }) => firstByte)),
    memory: median(loads.map(({ memory }) => memory)),
  };
}
