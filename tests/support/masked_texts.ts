/**
 * Random texts of secrets, and of what a mask may uncover beside them.
 *
 * @module
 */
import type { RedactOptions } from "@jizai/jizai/middleware/redact";
import type { Chance } from "./seeded.ts";

const word = "abcdefgh0123456789";

/** Options of `redact()`: exact secrets that overlap the mask, and patterns that look at the characters beside a match. */
export const maskings: readonly [RedactOptions, ...RedactOptions[]] = [
  { secrets: ["hunter2"] },
  { secrets: ["hunter2", "hunter2-long", "ter2x"], patterns: [/\bkey\d{4}\b/, /\d{3}\b/, /\bid_\w+/] },
  { secrets: ["act", "]x", "x[red", "[redacted", "d", "hunter2"], patterns: [/\w*\[\w+\]/] },
  { secrets: ["hunter2"], patterns: [/^pin\d/m, /\d$/m, /(?<=\W)tok\w{2}/, /(?<!\w)ab\b/, /x[^]{0,12}y/] },
  { secrets: ["hunter2", 'say "hi"'], patterns: [/(?<!\])c{2}/, /\B\d{2}\B/, /y\s*z/i] },
];

/** Options with patterns whose beginnings cannot be derived. What only a mask beside them uncovers may stay in the deltas. */
export const windowed: RedactOptions = {
  secrets: ["hunter2"],
  patterns: [/ab(?!\w)/, /(\w)\1\B/, /d(?=[^]{0,3}\])/],
  window: 16,
};

const fragments: readonly [string, ...string[]] = [
  "hunter2",
  "hunter2-long",
  "hunt",
  "er2",
  "x",
  "y",
  "d",
  "]",
  "[red",
  "acted]",
  "[redacted]",
  "redacted",
  "key1234",
  "id_",
  "pin7",
  "tokab",
  "ab",
  "cc",
  "z",
  "\\u0068unter2",
  "\\",
  'say \\"hi\\"',
  `sk-${word.repeat(2)}`,
  `AKIA${"ABCDEFGHIJKLMNOP"}`,
  `AIza${"A".repeat(35)}`,
  `Bearer ${word}`,
  " ",
  "\n",
  "😀",
  ".",
  "-",
  "7",
  "the",
];

/** Returns a text of up to `most` fragments. */
export function maskable({ below, one }: Chance, most: number): string {
  return Array.from({ length: below(most + 1) }, () => one(fragments)).join("");
}
