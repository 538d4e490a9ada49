/**
 * Simulates 10,000 conversations with faults per adapter, then 10,000 background runs with hand-overs and kills that only `recover()` continues, and 10,000
 * groups of processes that count in its key-value database. Prints the number of each kind of event. Exits with 1 if one breaks an invariant.
 * `deno task soak sqlite` soaks one adapter, `deno task soak sqlite recovery 17` simulates one run and prints each step, and
 * `deno task soak sqlite recovery 0 500` simulates 500 of them.
 * Of kind `journal` are conversations over the journal of an adapter.
 *
 * @module
 */
import { type Figures, simulateConversation } from "../support/faults/simulate_conversation.ts"; // first, because of its first import
import { placeNames, type Places, placesOf } from "../support/faults/places.ts";
import { simulateCounting } from "../support/faults/simulate_counting.ts";
import { simulateJournal } from "../support/faults/simulate_journal.ts";
import { simulateRecovery } from "../support/faults/simulate_recovery.ts";

const kinds = {
  conversation: simulateConversation,
  recovery: simulateRecovery,
  counting: simulateCounting,
  journal: simulateJournal,
} as const;
const [only, kind, from, until] = Deno.args;

for (const name of only === undefined ? placeNames : [only]) {
  await using places = await placesOf(name);
  if (!places) console.log(`Left out: the server of ${name} is not installed`);
  for (const [each, simulate] of Object.entries(kinds)) {
    if (!places || (kind !== undefined && kind !== each)) continue;
    if (from !== undefined && until === undefined) {
      console.log(await simulate(Number(from), places.open, console.log));
    } else {
      await soak(name, each, { simulate, places, seeds: [Number(from ?? 0), Number(until ?? 10_000)] });
    }
  }
}

/** The simulations of one kind with one adapter. */
interface Soak {
  readonly simulate: typeof simulateRecovery;
  readonly places: Places;
  readonly seeds: readonly [from: number, until: number];
}

async function soak(name: string, kind: string, { simulate, places, seeds: [from, until] }: Soak): Promise<void> {
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
      await places.empty();
      return await simulate(seed, places.open);
    } catch (error) {
      console.error(`Seed ${seed} fails. Replay it with: deno task soak ${name} ${kind} ${seed}\n${error}`);
      Deno.exitCode = 1;
      return { failed: 1 };
    }
  }
}
