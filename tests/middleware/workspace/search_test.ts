import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { assert, assertEquals } from "@std/assert";
import { type Call, work, write } from "../../support/workspace.ts";

Deno.test("search_files finds lines by text or regular expression, with paths relative to the folder", async () => {
  const files = memoryFiles({
    "a.txt": "one\r\ntwo (2)\r\n",
    "src/b.txt": "two\nthree",
    "src/core/c.txt": "2 times two",
    "node_modules/d.txt": "two",
  });
  await write(files, "e.bin", Uint8Array.of(0x74, 0x77, 0x6f, 0xff));
  const { results } = await work(files, [[
    ["search_files", { path: ".", pattern: "two" }],
    ["search_files", { path: "src", pattern: "two" }],
    ["search_files", { path: "a.txt", pattern: "(2)" }],
    ["search_files", { path: ".", pattern: "^t\\w+o$|\\(\\d\\)", regex: true }],
    ["search_files", { path: "node_modules", pattern: "t{1}w+o?", regex: true }],
    ["search_files", { path: ".", pattern: "Two" }],
    ["search_files", { path: ".", pattern: "" }],
    ["search_files", { path: "none", pattern: "two" }],
    ["search_files", { path: ".", pattern: "(", regex: true }],
    ["search_files", { path: ".", pattern: "(?=two)", regex: true }],
    ["search_files", { path: ".", pattern: "(t)\\1", regex: true }],
    ["search_files", { path: ".", pattern: "x".repeat(1_001), regex: true }],
    ["search_files", { path: ".", pattern: "(((a{99}){99}){99})", regex: true }],
    ["search_files", { path: ".", pattern: "(a?b?){500}", regex: true }],
  ]]);
  assertEquals(results, [
    "a.txt:2: two (2)\nsrc/b.txt:1: two\nsrc/core/c.txt:1: 2 times two",
    "b.txt:1: two\ncore/c.txt:1: 2 times two",
    "2: two (2)",
    "a.txt:2: two (2)\nsrc/b.txt:1: two",
    "d.txt:1: two",
    "[No line matches.]",
    "error: Cannot search: `pattern` is empty.",
    'error: Cannot search "none": there is no such file or folder.',
    "error: Cannot search: missing closing ): `(`; expected the syntax of RE2.",
    "error: Cannot search: invalid or unsupported Perl syntax: `(?=`; expected the syntax of RE2.",
    "error: Cannot search: invalid escape sequence: `\\1`; expected the syntax of RE2.",
    "error: Cannot search: `pattern` is too long; expected at most 1000 characters.",
    "error: Cannot search: invalid repeat count: `{99}`; expected the syntax of RE2.",
    "error: Cannot search: `pattern` is too complex; expected fewer repetitions.",
  ]);
});

Deno.test("search_files limits matches, the length of a line, and the text that it reads", async () => {
  const lines = (length: number, line: string) => Array(length).fill(line).join("\n");
  const files = memoryFiles({
    "many": lines(101, "x"),
    "wide": "y".repeat(301),
    "long": lines(20_000, "-".repeat(600)),
  });
  const { results } = await work([workspace(files, { maxBytes: 20_000_000 })], [[
    ["search_files", { path: "many", pattern: "x" }],
    ["search_files", { path: "wide", pattern: "y+", regex: true }],
    ["search_files", { path: "long", pattern: "z" }],
  ]]);
  assertEquals(results, [
    Array.from({ length: 100 }, (_, index) => `${index + 1}: x`).join("\n") +
    "\n[Only the first 100 matches are shown.]",
    `1: ${"y".repeat(300)}…`,
    "[Only a part of the text was searched; search a folder or file in it.]",
  ]);
});

Deno.test("search_files and edit_file take linear time for hostile patterns", async () => {
  const line = "a".repeat(50_000);
  const files = memoryFiles({ "a.txt": `${line}!`, "b.txt": "a".repeat(100_000) });
  const patterns = [
    "(a+)+$",
    "(a|a)*b",
    "(a|aa)+$",
    "(.*)*x",
    "([a-z]+)*\\d",
    "(a*)*(a*)*b",
    "^(a?){60}a{60}$",
    "(a|b)*a(a|b){200}c",
  ];
  const start = performance.now();
  const { results } = await work(files, [[
    ...patterns.map((pattern): Call => ["search_files", { path: "a.txt", pattern, regex: true }]),
    ["search_files", { path: "b.txt", pattern: `b${"a".repeat(50_000)}` }],
    ["edit_file", { path: "b.txt", old: `b${"a".repeat(50_000)}`, new: "" }],
  ]]);
  assert(performance.now() - start < 60_000, "it takes seconds, and not years");
  const none = results.map((result) =>
    result.replace("Only a part of the text was searched; search a folder or file in it.", "No line matches.")
  );
  assertEquals(none, [
    ...Array(patterns.length + 1).fill("[No line matches.]"),
    'error: Cannot edit "b.txt": `old` does not occur in the file; expected an exact match.',
  ]);
});

Deno.test("search_files matches the same lines as JavaScript for common patterns", async () => {
  const texts = ["", "a", "ab", "aab b", "1-2", "É😀", "x_y z", "a.c", "aaaa", "^$", "tab\tend"];
  const patterns = [
    "a*b",
    "a+?b",
    "^a?b?$",
    "a{2}",
    "a{2,}$",
    "^a{1,3}b",
    "(ab|b)+",
    "(?:a|b){2}",
    "[^a-c]",
    "[\\d-]+$",
    "\\bb\\b",
    "a\\Bb",
    ".",
    "^.$",
    "\\p{Lu}",
    "\\u{1F600}",
    "[😀]",
    "\\x61\\.",
    "\\t",
    "\\^\\$",
    "|x",
    "()",
    "\\w\\W\\w",
    "a|^$",
    "(a|(b|c))d?",
    "[\\]a]",
    "$^",
  ];
  const files = memoryFiles({ "texts": texts.join("\n") });
  const calls = patterns.map((pattern): Call => ["search_files", { path: "texts", pattern, regex: true }]);
  const { results } = await work(files, [calls]);
  assertEquals(
    results,
    patterns.map((pattern) => {
      const lines = texts.flatMap((text, index) =>
        new RegExp(pattern, "u").test(text) ? [`${index + 1}: ${text}`] : []
      );
      return lines.join("\n") || "[No line matches.]";
    }),
  );
});
