/**
 * Simulates 10,000 conversations with faults per adapter, then 10,000 background runs with hand-overs and kills that only `recover()` continues, and prints
 * the number of each kind of event. Exits with 1 if one breaks an invariant. `deno task soak sqlite` soaks one adapter, `deno task soak sqlite recovery 17`
 * simulates one run and prints each step, and `deno task soak sqlite recovery 0 500` simulates 500 of them.
 *
 * @module
 */
import { type Figures, simulateConversation } from "../support/faults/simulate_conversation.ts"; // first, because of its first import
import { simulateRecovery } from "../support/faults/simulate_recovery.ts";
import { postgresPlaces } from "../support/faults/postgres_places.ts";
import { adapters, names, type Place } from "../support/faults/storage.ts";

const kinds = { conversation: simulateConversation, recovery: simulateRecovery } as const;
const [only, kind, from, until] = Deno.args;

using kv = await Deno.openKv(":memory:");
await using postgres = only === undefined || only === "postgres" ? await postgresPlaces() : undefined;
const places = new Map<string, () => Place>(names.map((name) => [name, () => adapters[name](kv)]));
if (postgres) places.set("postgres", () => postgres.open());
const chosen = [...places.keys()].filter((name) => only === undefined || name === only);
if (chosen.length === 0) throw new TypeError(`Cannot soak "${only}": expected one of ${[...places.keys()].join(", ")}`);

for (const name of chosen) {
  for (const [each, simulate] of Object.entries(kinds)) {
    if (kind !== undefined && kind !== each) continue;
    const open = places.get(name);
    if (!open) continue;
    if (from !== undefined && until === undefined) console.log(await simulate(Number(from), open, console.log));
    else await soak(name, each, { simulate, open, seeds: [Number(from ?? 0), Number(until ?? 10_000)] });
  }
}

/** The simulations of one kind with one adapter. */
interface Soak {
  readonly simulate: typeof simulateRecovery;
  readonly open: () => Place;
  readonly seeds: readonly [from: number, until: number];
}

async function soak(name: string, kind: string, { simulate, open, seeds: [from, until] }: Soak): Promise<void> {
  const started = performance.now();
  const sums = new Map<string, number>();
  for (let seed = from; seed < until; seed++) {
    for (const [what, number] of Object.entries(await tried(seed))) sums.set(what, (sums.get(what) ?? 0) + number);
  }
  const seconds = ((performance.now() - started) / 1_000).toFixed();
  const figures = [...sums].map(([what, number]) => `${what} ${number}`);
  console.log([`${until - from} of kind ${kind} with ${name} in ${seconds} s`, ...figures].join(", "));

  async function tried(seed: number): Promise<Figures> {
    try {
      if (name === "postgres") await postgres?.empty();
      return await simulate(seed, open);
    } catch (error) {
      console.error(`Seed ${seed} fails. Replay it with: deno task soak ${name} ${kind} ${seed}\n${error}`);
      Deno.exitCode = 1;
      return { failed: 1 };
    }
  }
}
