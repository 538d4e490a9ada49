/**
 * Large values of a session's head, and references to them.
 */
import { assertEquals } from "@std/assert";
import { outline, referencesIn, restore } from "../../src/core/large_values.ts";
import { type Chance, seeded, seeds, withSeed } from "../support/seeded.ts";

/** Returns a random value. Some texts are long, and some members look like references. */
function valueOf(chance: Chance, depth = 4): unknown {
  const kind = chance.below(depth > 0 ? 8 : 5);
  if (kind === 0) return chance.below(100);
  if (kind === 1) return chance.one([null, true, "", -1.5]);
  if (kind < 5) return chance.one(["x", "漢字 $entry", "y".repeat(300), "z".repeat(2_000)]);
  const parts = Array.from({ length: chance.below(5) }, () => valueOf(chance, depth - 1));
  if (kind === 5) return parts;
  return Object.fromEntries(
    parts.map((part, at) => [chance.one(["a", "b", "c", "$entry", "__proto__"]) + (at > 2 ? at : ""), part]),
  );
}

Deno.test("a small head is stored as it is", () => {
  assertEquals(outline({ id: "s", run: { turn: 1 } }, new Map(), 7), {
    text: '{"id":"s","run":{"turn":1}}',
    added: [],
    numbers: new Map(),
  });
});

Deno.test("a head refers to its large values, and a value that has not changed is stored once", () => {
  const long = "x".repeat(2_000);
  const first = outline({ state: [["a", long], ["b", 1]] }, new Map(), 7);
  assertEquals(first.text, '{"state":[["a",{"$entry":7}],["b",1]]}');
  assertEquals(first.added, [JSON.stringify(long)]);
  const second = outline({ state: [["a", long], ["b", `${long}y`], ["c", long]] }, first.numbers, 9);
  assertEquals(second.text, '{"state":[["a",{"$entry":7}],["b",{"$entry":9}],["c",{"$entry":7}]]}');
  assertEquals(second.added, [JSON.stringify(`${long}y`)]);
  assertEquals(referencesIn(second.text), [7, 9, 7]);
});

Deno.test("a head and its values make the head again, whatever it contains", async () => {
  for (const seed of seeds(500)) {
    await withSeed(seed, () => {
      const chance = seeded(seed);
      const stored = new Map<number, string>();
      let known: ReadonlyMap<string, number> = new Map();
      for (let step = 0; step < 6; step++) {
        const head = { a: valueOf(chance), b: valueOf(chance) };
        const { text, added, numbers } = outline(head, known, stored.size + 1);
        for (const value of added) stored.set(stored.size + 1, value);
        known = numbers;
        const values = new Map([...stored].map(([number, value]) => [number, JSON.parse(value)]));
        assertEquals(restore(text, values), JSON.parse(JSON.stringify(head)));
        assertEquals(text.length < 40_000, true);
      }
      return Promise.resolve();
    });
  }
});
