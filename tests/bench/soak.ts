/**
 * Lives through 10,000 conversations in which things go wrong, with each place where sessions are kept, and prints what came to pass. Fails where
 * something was lost or doubled. `deno task soak memory 17` lives through one of them again, and tells what happens.
 *
 * @module
 */
import "../support/simulation.ts"; // before anything else
import { type Figures, live } from "../support/faults/life.ts";
import { type Adapter, adapters, names } from "../support/faults/storage.ts";

const many = 10_000;
const [only, seed] = Deno.args;
const chosen = names.filter((name) => only === undefined || name === only);
if (chosen.length === 0) throw new TypeError(`Cannot soak "${only}": there is ${names.join(", ")}`);

using kv = await Deno.openKv(":memory:");
for (const name of chosen) await (seed === undefined ? soak(name) : replay(name, Number(seed)));

async function soak(name: Adapter): Promise<void> {
  const started = performance.now();
  const sum = new Map<string, number>();
  for (let seed = 0; seed < many; seed++) {
    for (const [what, number] of Object.entries(await tried(name, seed))) sum.set(what, (sum.get(what) ?? 0) + number);
  }
  const seconds = (performance.now() - started) / 1_000;
  console.log([`${many} with ${name} in ${seconds.toFixed()} s`, ...[...sum].map((each) => each.join(" "))].join(", "));
}

async function tried(name: Adapter, seed: number): Promise<Figures> {
  try {
    return await live(seed, () => adapters[name](kv));
  } catch (error) {
    console.error(`With ${name}, seed ${seed} fails: deno task soak ${name} ${seed}\n${error}`);
    Deno.exitCode = 1;
    return { failed: 1 };
  }
}

async function replay(name: Adapter, seed: number): Promise<void> {
  console.log(await live(seed, () => adapters[name](kv), console.log));
}
