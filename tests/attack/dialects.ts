/**
 * Attacks the adapters of providers with canonical responses that combine the quirks of servers.
 *
 * @module
 */
import { dialects } from "../model/dialects/all.ts";
import { randomForm } from "../model/dialects/dialect.ts";
import { framing } from "../model/dialects/framing.ts";
import { checkLaw } from "../model/dialects/law.ts";
import type { Attack } from "./attack.ts";

/** Plays one response of each API with random quirks. Fails if an adapter loses or changes its content. */
export const dialectsAttack: Attack = {
  name: "dialects",
  async attempt(chance) {
    for (const dialect of dialects) {
      await checkLaw(dialect, randomForm(dialect.aspects, chance, 2), randomForm(framing, chance, 2), chance);
    }
    return dialects.length;
  },
};
