/**
 * Simulates 10,000 conversations with faults per adapter, and prints how often each kind of thing happened. Exits with 1 if one breaks a law.
 * `deno task soak memory 17` simulates one of them, and prints all that happens.
 *
 * @module
 */
import { type Figures, simulateConversation } from "../support/faults/simulate_conversation.ts"; // first: see there
import { type Adapter, adapters, names } from "../support/faults/storage.ts";

const conversations = 10_000;
const [only, seed] = Deno.args;
const chosen = names.filter((name) => only === undefined || name === only);
if (chosen.length === 0) throw new TypeError(`Cannot soak "${only}": expected one of ${names.join(", ")}`);

using kv = await Deno.openKv(":memory:");
for (const name of chosen) await (seed === undefined ? soak(name) : replay(name, Number(seed)));

async function soak(name: Adapter): Promise<void> {
  const started = performance.now();
  const sums = new Map<string, number>();
  for (let seed = 0; seed < conversations; seed++) {
    for (const [what, number] of Object.entries(await tried(name, seed))) {
      sums.set(what, (sums.get(what) ?? 0) + number);
    }
  }
  const seconds = ((performance.now() - started) / 1_000).toFixed();
  const figures = [...sums].map(([what, number]) => `${what} ${number}`);
  console.log([`${conversations} with ${name} in ${seconds} s`, ...figures].join(", "));
}

async function tried(name: Adapter, seed: number): Promise<Figures> {
  try {
    return await simulateConversation(seed, () => adapters[name](kv));
  } catch (error) {
    console.error(`Seed ${seed} fails with ${name}. Replay it with: deno task soak ${name} ${seed}\n${error}`);
    Deno.exitCode = 1;
    return { failed: 1 };
  }
}

async function replay(name: Adapter, seed: number): Promise<void> {
  console.log(await simulateConversation(seed, () => adapters[name](kv), console.log));
}
