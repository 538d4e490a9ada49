/**
 * Conversations over journals with faults: a few of the seeds that `deno task soak memory journal` simulates.
 */
import { simulateJournal } from "../support/faults/simulate_journal.ts"; // first, because of its first import
import { placesOf } from "../support/faults/places.ts";
import { seeds, withSeed } from "../support/seeded.ts";

for (const [name, count] of [["memory", 40], ["sqlite", 8]] as const) {
  Deno.test(`a client has read nothing that the journal does not have, whatever process dies, on ${name}`, async () => {
    await using places = await placesOf(name);
    for (const seed of seeds(count)) await withSeed(seed, async () => void await simulateJournal(seed, places!.open));
  });
}
