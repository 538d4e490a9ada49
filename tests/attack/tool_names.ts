/**
 * Attacks on tool names: a server lists tools in any order and with names that resemble each other.
 *
 * @module
 */
import { toolNames as namesOf } from "../../middleware/tools/mcp/tool.ts";
import type { Chance } from "../support/seeded.ts";
import { type Attack, expect } from "./attack.ts";

const pieces = ["a", "b", ".", "_", "-", "é", "/", "a.b", "a_b", "x".repeat(60), "__", " "] as const;

function name(chance: Chance): string {
  return Array.from({ length: 1 + chance.below(4) }, () => chance.one(pieces)).join("");
}

/** Returns the name that a server gives to a tool to replace another one: exactly the folded name of that tool. */
function forged(other: string): string {
  return (namesOf("docs", [other]).get(other) ?? "").slice("mcp__docs__".length);
}

const isExact = (tool: string) => /^[A-Za-z0-9_-]{1,64}$/.test(`mcp__docs__${tool}`);

/** Names random tools. Fails if the name of a tool depends on the other tools, if two tools share one, or if a tool is lost. */
export const toolNames: Attack = {
  name: "tool_names",
  attempt(chance) {
    const honest = Array.from({ length: 1 + chance.below(8) }, () => name(chance));
    const forgeries = chance.below(2) === 0 ? honest.map(forged) : [];
    const tools = [...new Set([...honest, ...forgeries])];
    const names = namesOf("docs", tools);
    const used = [...names.values()];
    const seen = JSON.stringify([...names]);
    expect(new Set(used).size === used.length, () => `two tools have one name: ${seen}`);
    for (const [own, given] of names) {
      expect(/^[A-Za-z0-9_-]{1,64}$/.test(given), () => `providers reject ${given}`);
      expect(namesOf("docs", [own]).get(own) === given, () => `${own} is named ${given} beside others: ${seen}`);
      if (isExact(own)) {
        expect(given === `mcp__docs__${own}`, () => `the exact name of ${own} became ${given}`);
      } else expect(/_[0-9a-f]{8}$/.test(given), () => `${given} does not end with a hash`);
    }
    const lost = tools.filter((tool) => !names.has(tool) && (isExact(tool) || !tools.includes(forged(tool))));
    expect(lost.length === 0, () => `${lost.join(", ")} has no name beside others: ${seen}`);
    return Promise.resolve(tools.length);
  },
};
