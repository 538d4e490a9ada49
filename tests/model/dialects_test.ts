/**
 * Canonical responses as the servers of each API stream them, alone with each quirk and with several.
 *
 * `deno task attack --seconds 3600 dialects` tries more combinations.
 */
import { hashOf, seeded, seeds, withSeed } from "../support/seeded.ts";
import { dialects } from "./dialects/all.ts";
import { randomForm } from "./dialects/dialect.ts";
import { framing } from "./dialects/framing.ts";
import { checkLaw, checkQuirk } from "./dialects/law.ts";

for (const dialect of dialects) {
  const { name, aspects } = dialect;

  for (const [aspect, values] of Object.entries(aspects)) {
    for (const value of values) {
      Deno.test(`${name} reads a response whose aspect ${aspect} is "${value}"`, async () => {
        for (const seed of seeds(6)) {
          await withSeed(seed, () => checkQuirk(dialect, [aspect, value], seeded(seed + hashOf(`${aspect} ${value}`))));
        }
      });
    }
  }

  Deno.test(`${name} reads responses with several quirks`, async () => {
    for (const seed of seeds(250)) {
      await withSeed(seed, () => {
        const chance = seeded(seed);
        return checkLaw(dialect, randomForm(aspects, chance, 3), randomForm(framing, chance, 3), chance);
      });
    }
  });
}
