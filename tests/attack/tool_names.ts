/**
 * Attacks on tool names: a server lists tools in any order and with names that resemble each other.
 *
 * @module
 */
import { toolNames as namesOf } from "../../middleware/tools/mcp/name.ts";
import type { Chance } from "../support/seeded.ts";
import { type Attack, expect } from "./attack.ts";

const pieces = ["a", "b", ".", "_", "-", "é", "/", "a.b", "a_b", "x".repeat(60), "__", " "] as const;

function name(chance: Chance): string {
  return Array.from({ length: 1 + chance.below(4) }, () => chance.one(pieces)).join("");
}

/** Names random tools. Fails if the name of a tool depends on the other tools, or if two tools share one. */
export const toolNames: Attack = {
  name: "tool_names",
  attempt(chance) {
    const tools = [...new Set(Array.from({ length: 1 + chance.below(8) }, () => name(chance)))];
    const names = namesOf("docs", tools);
    const used = [...names.values()];
    const seen = JSON.stringify([...names]);
    expect(new Set(used).size === used.length, () => `two tools have one name: ${seen}`);
    for (const [own, given] of names) {
      expect(/^[A-Za-z0-9_-]{1,64}$/.test(given), () => `providers reject ${given}`);
      expect(namesOf("docs", [own]).get(own) === given, () => `${own} is named ${given} beside others: ${seen}`);
      const exact = `mcp__docs__${own}`;
      if (/^[A-Za-z0-9_-]{1,64}$/.test(exact)) {
        expect(given === exact, () => `the exact name of ${own} became ${given}`);
      } else expect(/_[0-9a-f]{8}$/.test(given), () => `${given} does not end with a hash`);
    }
    return Promise.resolve(tools.length);
  },
};
