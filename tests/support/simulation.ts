/**
 * Simulation: a world in which everything that happens follows from a seed, so that it happens again. Time passes when nothing else is left to be done.
 * Whoever simulates imports this before anything else: what others take of the platform, when they are loaded, has to be of this world too.
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
  /** How much is under way outside of the world. */
  outside: number;
}

const platform = { Date, setTimeout, clearTimeout, setInterval, clearInterval, random: Math.random };
const { randomUUID, subtle: { digest } } = crypto;
const longest = 24 * 60 * 60 * 1_000;
let world: World | undefined;
let ids = 2 ** 40; // those of the platform are lower

/** Does `work` in the world of `seed`. Fails where it waits for what cannot happen. */
export async function simulate<T>(seed: number, work: (chance: Chance) => Promise<T>): Promise<T> {
  const chance = seeded(seed);
  const begins = Date.UTC(2_030, 0);
  const here: World = { chance, timers: new Map(), now: begins, outside: 0 };
  world = here;
  try {
    let settled = false;
    const done = work(chance).finally(() => settled = true);
    done.catch(() => {}); // it is waited for below
    for (;;) {
      await turned();
      if (here.outside > 0) continue; // to sleep until then takes longer
      if (settled) return await done; // and nothing of this world goes on in the next
      if (here.now - begins > longest || !pass(here)) throw new Error("Cannot go on: it waits for ever");
    }
  } finally {
    world = undefined;
  }
}

/** Passes time until the next timer is due. */
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

/** Does `work` outside of the world, where what takes its time is not in its hands; time stands still. */
export async function outside<T>(work: () => Promise<T>): Promise<T> {
  if (!world) return await work();
  const here = world;
  here.outside++;
  try {
    return await work();
  } finally {
    await turned(); // whether it took its time or not
    here.outside--;
  }
}

/** Settles when all promises have settled that can. */
function turned(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** Settles after `ms` milliseconds of the world. */
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
    construct: (date, args, target) => Reflect.construct(date, args.length > 0 || !world ? args : [world.now], target),
    get: (date, key, receiver) => key === "now" && world ? () => world?.now : Reflect.get(date, key, receiver),
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
