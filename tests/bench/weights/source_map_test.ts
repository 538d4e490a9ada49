import { assertEquals, assertThrows } from "@std/assert";
import { charactersBySource, splitSourceMap } from "./source_map.ts";

Deno.test("characters are counted by source: up to the next mapping, also backwards, and for the bundler without one", () => {
  // Line 1: 2 characters of the bundler, 3 of a, 20 of b. Line 2: 1 of a, then 4 of the bundler, of which a segment of one number tells.
  const code = `xx${"a".repeat(3)}${"b".repeat(20)}\na----`;
  const map = { sources: ["a.ts", "b.ts"], mappings: "EAAA,GCAA;ADAA,C" };
  assertEquals(charactersBySource({ code, map }), new Map([["a.ts", 4], ["b.ts", 20], ["", 7]]));
});

Deno.test("numbers of several digits are decoded", () => {
  const sources = Array.from({ length: 18 }, (_, index) => `${index}.ts`);
  const code = "-".repeat(40) + "x";
  assertEquals(charactersBySource({ code, map: { sources, mappings: "wCiBAA" } }), new Map([["", 40], ["17.ts", 1]]));
});

Deno.test("a source map is split from the bundle in whose last comment it is", () => {
  const map = { sources: ["a.ts"], sourcesContent: ["“text”"], mappings: "AAAA" };
  const encoded = btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(map))));
  const text = `code();\n//# sourceMappingURL=data:application/json;base64,${encoded}\n`;
  assertEquals(splitSourceMap(text), { code: "code();\n", map });
  assertThrows(() => splitSourceMap("code();"), TypeError, "the bundle ends without one");
});
