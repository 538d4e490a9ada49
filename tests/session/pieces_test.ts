import { assertEquals } from "@std/assert";
import { collectLines, piecesOf, textOfLines } from "../../src/session/pieces.ts";

/** Returns the page read from pieces, `[first, part, text]`. */
function gathered(after: number, ...pieces: readonly (readonly [first: number, part: number, text: string])[]) {
  const collector = collectLines(after);
  const taken = pieces.map(([first, part, text]) => collector.add({ first, part, text }));
  return { taken: taken.filter(Boolean).length, ...collector.lines() };
}

Deno.test("a text is split into pieces, but never within a character", () => {
  assertEquals(piecesOf("", 3), []);
  assertEquals(piecesOf("abcdefg", 3), ["abc", "def", "g"]);
  assertEquals(piecesOf("abcdef", 3), ["abc", "def"]);
  assertEquals(piecesOf("ab😀d😀", 3), ["ab", "😀d", "😀"]);
  assertEquals(piecesOf("ab\ud83d", 3), ["ab\ud83d"]);
});

Deno.test("lines are joined from their pieces, however they were split", () => {
  assertEquals(gathered(0, [1, 0, "a\nb"], [1, 1, "b\nc"], [1, 2, "\n"], [4, 0, "d\n"]), {
    taken: 4,
    first: 1,
    lines: ["a", "bb", "c", "d"],
  });
  assertEquals(gathered(2, [1, 0, "a\nb"], [1, 1, "b\nc"], [1, 2, "\n"], [4, 0, "d\n"]), {
    taken: 4,
    first: 3,
    lines: ["c", "d"],
  });
  assertEquals(gathered(0, [1, 0, textOfLines(["", "a", ""])]), { taken: 1, first: 1, lines: ["", "a", ""] });
  assertEquals(gathered(7), { taken: 0, first: 8, lines: [] });
});

Deno.test("lines after a missing piece are read", () => {
  const d = [4, 0, "d\n"] as const;
  const rest = { first: 4, lines: ["d"] };
  assertEquals(gathered(0, [1, 0, "a\n"], d), { taken: 2, ...rest });
  assertEquals(gathered(0, [1, 1, "b\nc\n"], d), { taken: 2, ...rest });
  assertEquals(gathered(0, [1, 0, "a\nb"], d), { taken: 2, ...rest });
  assertEquals(gathered(0, [1, 0, "a\nb"], [1, 2, "c\n"], d), { taken: 3, ...rest });
  assertEquals(gathered(0, [1, 0, "a\n"], [2, 1, "b\nc\n"], d), { taken: 3, ...rest });
  assertEquals(gathered(0, [1, 0, "a\n"], [2, 0, "b"], [3, 1, "c\n"]), { taken: 3, first: 1, lines: ["a"] });
});

Deno.test("a page ends at its size limit", () => {
  const long = "x".repeat(300_000);
  const page = gathered(0, [1, 0, long], [1, 1, `${long}\n`], [2, 0, "a\n"], [3, 0, "b\n"]);
  assertEquals(page, { taken: 2, first: 1, lines: [`${long}${long}`] });
  assertEquals(gathered(0, [1, 0, `${long}\n`], [2, 0, `${long}\n`], [3, 0, "a\n"]).lines.length, 2);
});

Deno.test("an addition that lacks a piece does not fill a page", () => {
  const long = "x".repeat(300_000);
  const page = gathered(0, [1, 0, long], [1, 1, long], [1, 3, `${long}\n`], [2, 0, "a\n"], [3, 0, "b\n"]);
  assertEquals(page, { taken: 5, first: 2, lines: ["a", "b"] });
});
