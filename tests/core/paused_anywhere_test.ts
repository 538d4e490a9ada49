import { assert } from "@std/assert";
import { likeAtOnce, walk } from "../support/random_agent/legs.ts";
import { seeds, withSeed } from "../support/seeded.ts";

Deno.test("a run that is paused anywhere, and goes on elsewhere, comes to what it comes to when it is answered at once", async () => {
  let pauses = 0;
  for (const seed of seeds(500)) pauses += await withSeed(seed, () => likeAtOnce(seed, walk));
  assert(pauses > 0);
});
