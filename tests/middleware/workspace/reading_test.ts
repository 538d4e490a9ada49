/**
 * `workspace()` and `memoryFiles()`: their options, and the tools that read, list and search files.
 */
import { agent, type Scope, textOf } from "@jizai/jizai";
import type { Files } from "@jizai/jizai/middleware/workspace";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { fileLaws, scripted, testMiddleware } from "@jizai/jizai/testing";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { stub } from "@std/testing/mock";
import { type Call, read, work, write } from "../../support/workspace.ts";

Deno.test("workspace() obeys the laws of middleware", async () => {
  const calls: readonly Call[] = [
    ["write_file", { path: "a.txt", content: "one" }],
    ["edit_file", { path: "a.txt", old: "one", new: "two" }],
    ["read_file", { path: "../secret" }],
    ["list_files", { path: ".", deep: true }],
    ["search_files", { path: ".", pattern: "t" }],
    ["change_directory", { path: "src" }],
  ];
  await testMiddleware(() => workspace(() => memoryFiles({ "src/b.txt": "b" })), { calls });
});

Deno.test("memoryFiles() obeys the laws of files", async () => {
  await fileLaws(() => memoryFiles());
});

Deno.test("memoryFiles() refuses a file at the path of a folder, and a file inside a file", async () => {
  const files = memoryFiles({ "a/b": "b" });
  const { results } = await work(files, [[
    ["write_file", { path: "a", content: "x" }],
    ["write_file", { path: "a/b/c", content: "x" }],
    ["write_file", { path: ".", content: "x" }],
  ]]);
  assertEquals(results, [
    'error: Cannot write "a": it is a folder.',
    'error: Cannot write "a/b/c": "a/b" is a file.',
    'error: Cannot write ".": it is a folder.',
  ]);
  assertEquals(await read(files, "a/b"), "b");
});

Deno.test("workspace() throws if maxBytes is less than 1", () => {
  assertThrows(() => workspace(memoryFiles(), { maxBytes: 0 }), RangeError, "`maxBytes` is 0; expected 1 or more");
});

Deno.test("each run can have its own files", async () => {
  const shelves = { ada: memoryFiles({ "me": "Ada" }), bob: memoryFiles({ "me": "Bob" }) };
  const assistant = agent({
    model: scripted(
      { calls: [["read_file", { path: "me" }]] },
      "Done.",
      { calls: [["read_file", { path: "me" }]] },
      "Done.",
    ),
    use: [workspace(({ vars }: Scope<{ user: "ada" | "bob" }>) => shelves[vars.user])],
  });
  for (const [user, name] of [["ada", "Ada"], ["bob", "Bob"]] as const) {
    const { messages } = await assistant.run({ prompt: "Go", vars: { user } }).result;
    assertEquals(messages.flatMap((message) => message.role === "tool" ? message.results.map(textOf) : []), [name]);
  }
});

Deno.test("read_file returns a whole file, or some of its lines", async () => {
  const files = memoryFiles({ "five.txt": "1\n2\n3\n4\n5\n", "crlf.txt": "\ufeff1\r\n2", "none.txt": "" });
  const { results } = await work(files, [[
    ["read_file", { path: "five.txt" }],
    ["read_file", { path: "five.txt", from: 2, lines: 2 }],
    ["read_file", { path: "five.txt", from: 5, lines: null }],
    ["read_file", { path: "five.txt", from: 6 }],
    ["read_file", { path: "crlf.txt" }],
    ["read_file", { path: "none.txt" }],
    ["read_file", { path: "five.txt", from: 0 }],
    ["read_file", { path: "five.txt", lines: 1.5 }],
    ["read_file", {}],
  ]]);
  assertEquals(results, [
    "1\n2\n3\n4\n5\n",
    "2\n3\n[Lines 2 to 3 of 5.]",
    "5\n[Lines 5 to 5 of 5.]",
    'error: Cannot read "five.txt" from line 6: it has 5 lines.',
    "\ufeff1\r\n2",
    "[The file is empty.]",
    "error: The input of read_file is not valid: from: Too small: expected number to be >=1",
    "error: The input of read_file is not valid: lines: Invalid input: expected int, received number",
    "error: The input of read_file is not valid: path: Invalid input: expected string, received undefined",
  ]);
});

Deno.test("read_file limits lines and characters, and maxBytes limits files", async () => {
  const many = Array.from({ length: 2_001 }, (_, index) => index + 1);
  const files = memoryFiles({
    "many.txt": many.join("\n"),
    "wide.txt": "😀".repeat(30_000),
    "large.txt": "x".repeat(101),
  });
  const { results } = await work(files, [[
    ["read_file", { path: "many.txt" }],
    ["read_file", { path: "many.txt", from: 2, lines: Number.MAX_SAFE_INTEGER }],
    ["read_file", { path: "wide.txt" }],
  ]]);
  assertEquals(results, [
    `${many.slice(0, 2_000).join("\n")}\n[Lines 1 to 2000 of 2001.]`,
    `${many.slice(1).join("\n")}\n[Lines 2 to 2001 of 2001.]`,
    `${"😀".repeat(25_000)}\n[Lines 1 to 1 of 1; the last one is cut.]`,
  ]);
  const small = await work([workspace(files, { maxBytes: 100 })], [[
    ["read_file", { path: "large.txt" }],
    ["edit_file", { path: "large.txt", old: "x", new: "y" }],
    ["write_file", { path: "large.txt", content: "y" }],
    ["write_file", { path: "new.txt", content: "ä".repeat(51) }],
    ["write_file", { path: "new.txt", content: "ä".repeat(50) }],
  ]]);
  assertEquals(small.results, [
    'error: Cannot read "large.txt": it has 101 bytes; expected at most 100.',
    'error: Cannot write "large.txt": it has 101 bytes; expected at most 100.',
    'error: Cannot write "large.txt": it has 101 bytes; expected at most 100.',
    'error: Cannot write "new.txt": it has 102 bytes; expected at most 100.',
    "Created.",
  ]);
});

Deno.test("read_file and edit_file reject a binary file, a folder and a missing file", async () => {
  const files = memoryFiles({ "folder/a.txt": "a" });
  await write(files, "latin1", Uint8Array.of(0x63, 0x61, 0x66, 0xe9));
  await write(files, "zero", Uint8Array.of(0x61, 0, 0x61));
  const { results } = await work(files, [["latin1", "zero", "folder", "missing"].flatMap((path): readonly Call[] => [
    ["read_file", { path }],
    ["edit_file", { path, old: "a", new: "b" }],
  ])]);
  assertEquals(results, [
    'error: Cannot read "latin1": it is a binary file.',
    'error: Cannot edit "latin1": it is a binary file.',
    'error: Cannot read "zero": it is a binary file.',
    'error: Cannot edit "zero": it is a binary file.',
    'error: Cannot read "folder": it is a folder.',
    'error: Cannot write "folder": it is a folder.',
    'error: Cannot read "missing": there is no such file.',
    'error: Cannot edit "missing": there is no such file.',
  ]);
  assertEquals((await files.read("latin1"))?.bytes, Uint8Array.of(0x63, 0x61, 0x66, 0xe9));
});

Deno.test("list_files lists a folder, or the whole tree below it", async () => {
  const files = memoryFiles({
    "b.txt": "",
    "src/a.ts": "",
    "src/core/x.ts": "",
    ".git/HEAD": "",
    ".env": "",
    "z ": "",
  });
  const { results } = await work(files, [[
    ["list_files", { path: "." }],
    ["list_files", { path: ".", deep: true }],
    ["list_files", { path: "src", deep: true }],
    ["list_files", { path: ".git" }],
    ["list_files", { path: "b.txt" }],
    ["list_files", { path: "none" }],
    ["list_files", { path: ".", deep: "yes" }],
  ]]);
  assertEquals(results, [
    ".env\n.git/\nb.txt\nsrc/",
    ".env\n.git/\nb.txt\nsrc/\nsrc/a.ts\nsrc/core/\nsrc/core/x.ts",
    "a.ts\ncore/\ncore/x.ts",
    "HEAD",
    'error: Cannot list "b.txt": there is no such folder.',
    'error: Cannot list "none": there is no such folder.',
    "error: The input of list_files is not valid: deep: Invalid input: expected boolean, received string",
  ]);
  assertEquals((await work(memoryFiles(), [[["list_files", { path: "." }]]])).results, ["[The folder is empty.]"]);
});

Deno.test("list_files lists at most 1,000 entries", async () => {
  const names = Array.from({ length: 1_001 }, (_, index) => `${1_000 + index}`);
  const files = memoryFiles(Object.fromEntries(names.map((name) => [name, ""])));
  const { results } = await work(files, [[["list_files", { path: "." }]]]);
  assertEquals(results, [`${names.slice(0, 1_000).join("\n")}\n[Only the first 1000 entries are listed.]`]);
});

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
  const line = "a".repeat(19_000);
  const files = memoryFiles({ "a.txt": `${line}!`, "b.txt": "a".repeat(100_000), "lines.txt": "a\n".repeat(400_000) });
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
    ["search_files", { path: "lines.txt", pattern: "x".repeat(500_000) }],
    ["edit_file", { path: "b.txt", old: `b${"a".repeat(50_000)}`, new: "" }],
  ]]);
  assert(performance.now() - start < 60_000, "it takes seconds, and not years");
  const none = results.map((result) =>
    result.replace("Only a part of the text was searched; search a folder or file in it.", "No line matches.")
  );
  assertEquals(none, [
    ...Array(patterns.length + 2).fill("[No line matches.]"),
    'error: Cannot edit "b.txt": `old` does not occur in the file; expected an exact match.',
  ]);
});

Deno.test("search_files reads no more files than it can search, also if they are not text", async () => {
  const files = memoryFiles(Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`${index}`, "x"])));
  const bytes = new Uint8Array(1_000_000).fill(0x61);
  bytes[999_999] = 0;
  let read = 0;
  const large: Files = {
    ...files,
    stat: (path) => Promise.resolve(path === "." ? { type: "folder" } : { type: "file", size: bytes.length }),
    read() {
      read++;
      return Promise.resolve({ bytes, version: "1" });
    },
  };
  const { results } = await work(large, [[["search_files", { path: ".", pattern: "^$", regex: true }]]]);
  assertEquals(results, ["[Only a part of the text was searched; search a folder or file in it.]"]);
  assert(read < 200, `${read} files were read`);
});

Deno.test("search_files lets the process do other work while it searches", async () => {
  const files = memoryFiles({ "a.txt": "a line\n".repeat(100_000), "b.txt": "a line\n".repeat(100_000) });
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  await work(files, [[["search_files", { path: ".", pattern: "another line" }]]]);
  clearInterval(timer);
  assert(turns > 1, `${turns} timers ran`);
});

Deno.test("search_files says that a pattern took too long, and which lines are too long for a pattern", async () => {
  let time = 0;
  using _ = stub(performance, "now", () => time += 50);
  const files = memoryFiles({ "a.txt": "line\n".repeat(100), "long.txt": `x${"-".repeat(20_000)}` });
  const { results } = await work(files, [[
    ["search_files", { path: "a.txt", pattern: "l.+e", regex: true }],
    ["search_files", { path: "long.txt", pattern: "[x]", regex: true }],
    ["search_files", { path: "long.txt", pattern: "x" }],
  ]]);
  const partly = "[Only a part of the text was searched; search a folder or file in it.]";
  const tooLong = "[Lines of more than 20000 characters were not matched; search for a literal text.]";
  const found = Array.from({ length: 24 }, (_, index) => `${index + 1}: line`);
  assertEquals(results, [[...found, partly].join("\n"), tooLong, `1: x${"-".repeat(299)}…`]);
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
