import { simulateCounting } from "../../support/faults/simulate_counting.ts"; // first, because of its first import
import { adapters, names } from "../../support/faults/storage.ts";
import { seeds, withSeed } from "../../support/seeded.ts";

for (const name of names) {
  Deno.test(`processes that count and write in one key-value database lose and repeat nothing, stored in ${name}`, async () => {
    using kv = await Deno.openKv(":memory:");
    for (const seed of seeds(50)) {
      await withSeed(seed, async () => void await simulateCounting(seed, () => adapters[name](kv)));
    }
  });
}
