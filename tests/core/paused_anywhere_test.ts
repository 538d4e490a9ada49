import { assert } from "@std/assert";
import { likeAtOnce, walk } from "../support/random_agent/legs.ts";
import { seeds, withSeed } from "../support/seeded.ts";

Deno.test("a run that pauses at any point, and resumes elsewhere, has the outcome of a run that is answered immediately", async () => {
  let pauses = 0;
  for (const seed of seeds(500)) pauses += await withSeed(seed, () => likeAtOnce(seed, walk));
  assert(pauses > 0);
});
