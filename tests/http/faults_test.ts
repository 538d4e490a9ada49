import "../support/simulation.ts"; // before anything else
import { live } from "../support/faults/life.ts";
import { adapters, names } from "../support/faults/storage.ts";
import { seeds, withSeed } from "../support/seeded.ts";

for (const name of names) {
  Deno.test(`serve() loses nothing and doubles nothing, in 200 conversations in which things go wrong, with ${name}`, async () => {
    using kv = await Deno.openKv(":memory:");
    for (const seed of seeds(200)) await withSeed(seed, () => live(seed, () => adapters[name](kv)));
  });
}
