/**
 * SHA-256: the hash that `crypto.subtle` makes, for inputs around the length of a block and random ones.
 */
import { assertEquals } from "@std/assert";
import { sha256 } from "../../../src/core/lib/sha256.ts";
import { seeded } from "../../support/seeded.ts";

Deno.test("a hash is that of crypto.subtle, for every length around blocks and for long inputs", async () => {
  const chance = seeded(1);
  const lengths = [...Array(200).keys(), 1_000, 65_535, 65_536];
  for (const length of lengths) {
    const bytes = Uint8Array.from({ length }, () => chance.below(256));
    assertEquals(sha256(bytes), new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
  }
});
