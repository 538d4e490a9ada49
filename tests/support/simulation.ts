/**
 * Simulation: a world in which every event follows from a seed, so that a run can be repeated. Time advances when no work is left.
 * Import this module first: modules that read clocks or timers when they are loaded must get those of the simulation.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { setImmediate } from "node:timers";
import { type Chance, seeded } from "./seeded.ts";

interface Timer {
  readonly due: number;
  readonly run: () => void;
  readonly every: number | undefined;
}

interface World {
  readonly chance: Chance;
  readonly timers: Map<number, Timer>;
  now: number;
  /** The operations outside the simulation. */
  readonly outside: Set<Promise<void>>;
}

const platform = { Date, setTimeout, clearTimeout, setInterval, clearInterval, random: Math.random };
const { randomUUID, subtle: { digest } } = crypto;
const longest = 24 * 60 * 60 * 1_000;
let world: World | undefined;
let ids = 2 ** 40; // ids of the platform are lower

/** Does `work` in the world of `seed`. Throws if it waits for something that cannot happen. */
export async function simulate<T>(seed: number, work: (chance: Chance) => Promise<T>): Promise<T> {
  const chance = seeded(seed);
  const begins = Date.UTC(2_030, 0);
  const here: World = { chance, timers: new Map(), now: begins, outside: new Set() };
  world = here;
  try {
    let settled = false;
    const done = work(chance).finally(() => settled = true);
    done.catch(() => {}); // awaited below
    for (;;) {
      await turned();
      if (here.outside.size > 0) {
        await Promise.all(here.outside);
        continue; // time does not advance during operations outside
      }
      if (settled) return await done; // so that no work continues in the next world
      if (here.now - begins > longest || !pass(here)) throw new Error("Cannot go on: it waits for ever");
    }
  } finally {
    world = undefined;
  }
}

/** Advances time to the next timer. */
function pass(world: World): boolean {
  let next: readonly [number, Timer] | undefined;
  for (const timer of world.timers) if (!next || timer[1].due < next[1].due) next = timer;
  if (!next) return false;
  const [id, { due, every, run }] = next;
  world.now = due;
  world.timers.delete(id);
  if (every !== undefined) world.timers.set(id, { due: due + every, every, run });
  run();
  return true;
}

/** Does `work` outside the simulation, such as real I/O. Simulated time stands still meanwhile. */
export async function outside<T>(work: () => Promise<T>): Promise<T> {
  if (!world) return await work();
  const { outside } = world;
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  outside.add(ended);
  try {
    return await work();
  } finally {
    await turned(); // so that its duration has no effect on the order
    outside.delete(ended);
    end();
  }
}

/** Resolves when all promises that can settle have settled. */
function turned(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** Resolves after `ms` milliseconds of simulated time. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}

type Start = (run: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) => unknown;

function starting(start: Start, repeats: boolean): Start {
  return (run, ms = 0, ...args) => {
    if (!world) return start(run, ms, ...args);
    const every = repeats ? Math.max(1, ms) : undefined;
    world.timers.set(++ids, { due: world.now + Math.max(0, ms), every, run: () => run(...args) });
    return ids;
  };
}

function clearing(clear: (id?: number) => void): (id?: number) => void {
  return (id) => id !== undefined && world?.timers.delete(id) ? undefined : clear(id);
}

Object.assign(globalThis, {
  Date: new Proxy(Date, {
    construct: (date, args, target) =>
      Reflect.construct(date, args.length > 0 || !world ? args : [Math.trunc(world.now)], target),
    get: (date, key, receiver) =>
      key === "now" && world ? () => Math.trunc(world?.now ?? platform.Date.now()) : Reflect.get(date, key, receiver),
  }),
  setTimeout: starting(platform.setTimeout, false),
  setInterval: starting(platform.setInterval, true),
  clearTimeout: clearing(platform.clearTimeout),
  clearInterval: clearing(platform.clearInterval),
});
Math.random = () => world ? world.chance.below(2 ** 32) / 2 ** 32 : platform.random();
Object.assign(crypto, {
  randomUUID() {
    if (!world) return randomUUID.call(crypto);
    const { below } = world.chance;
    const hex = Array.from({ length: 32 }, () => below(16).toString(16)).join("");
    return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, "$1-$2-4$3-8$4-$5");
  },
});
Object.assign(crypto.subtle, {
  async digest(algorithm: AlgorithmIdentifier, data: BufferSource): Promise<ArrayBuffer> {
    if (!world || algorithm !== "SHA-256") return await digest.call(crypto.subtle, algorithm, data);
    return Uint8Array.from(createHash("sha256").update(new Uint8Array(data as ArrayBuffer)).digest()).buffer;
  },
});
