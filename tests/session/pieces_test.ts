import { assertEquals } from "@std/assert";
import { piecesOf } from "../../src/session/pieces.ts";

Deno.test("a text is split into pieces, but never within a character", () => {
  assertEquals(piecesOf("", 3), []);
  assertEquals(piecesOf("abcdefg", 3), ["abc", "def", "g"]);
  assertEquals(piecesOf("abcdef", 3), ["abc", "def"]);
  assertEquals(piecesOf("ab😀d😀", 3), ["ab", "😀d", "😀"]);
  assertEquals(piecesOf("ab\ud83d", 3), ["ab\ud83d"]);
});
