/**
 * Attacks on permission rules in the syntax of Claude. The model spells a denied command, path or address in random ways, and looks for a rule about another
 * one that allows it.
 *
 * @module
 */
import { ruled } from "../support/ruled.ts";
import type { Chance } from "../support/seeded.ts";
import { spellAddress, spellCommand, spellPath } from "../support/spellings.ts";
import { type Attack, expect } from "./attack.ts";

/** A kind of call: how it is spelled, the rules that deny it, and the rules that do not allow it. */
interface Kind {
  readonly spell: (chance: Chance) => string;
  readonly denies: readonly [string, ...string[]];
  readonly others: readonly [string, ...string[]];
}

/** The pattern of any folders. */
const any = "**";

const kinds: readonly [Kind, ...Kind[]] = [
  {
    spell: (chance) => spellCommand(chance, chance.one([["rm", "-rf", "x"], ["rm", "y"], ["rm"]])),
    denies: ["Bash(rm *)", "Bash(rm:*)", "Bash(*rm*)", "Bash(r*)"],
    others: ["Bash(ls *)", "Bash(echo *)", "Bash(cat *)", "Bash(sudo ls *)", "Bash(bash)", "Bash(true)", "Bash(A=1 *)"],
  },
  {
    spell: (chance) => spellPath(chance, chance.one(["secret.txt", "a/secret.txt", "a/b/secret.txt"]), "/repo"),
    denies: ["Read(*secret.txt)", `Read(/${any}/secret.txt)`, `Read(${any}/secret.txt)`, "Read(//repo/*)"],
    others: ["Read(ok/*)", `Read(x/${any})`, "Read(a/b/c/*)", `Read(./ok/${any})`, "Read(//repo/ok/*)"],
  },
  {
    spell: (chance) => spellAddress(chance, chance.one(["evil.com", "a.evil.com"])),
    denies: ["WebFetch(domain:*evil.com)", "WebFetch(domain:*.com)"],
    others: [
      "WebFetch(domain:ok.com)",
      "WebFetch(https://ok.com/*)",
      "WebFetch(domain:com)",
      "WebFetch(domain:evil.org)",
    ],
  },
];

/** Makes 30 calls under a rule that denies them, and under one that allows others. */
export const rules: Attack = {
  name: "rules",
  async attempt(chance) {
    const { spell, denies, others } = chance.one(kinds);
    const calls = Array.from({ length: 30 }, () => spell(chance));
    for (const [behavior, rule] of [["deny", chance.one(denies)], ["allow", chance.one(others)]] as const) {
      const outcomes = await ruled(behavior, rule, calls);
      const wrong = calls.filter((_, index) => outcomes[index] === "ok");
      expect(wrong.length === 0, () => `${behavior} ${rule} lets run ${JSON.stringify(wrong[0])}`);
    }
    return calls.length;
  },
};
