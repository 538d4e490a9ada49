import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { assertEquals } from "@std/assert";
import { type Call, work, write } from "../../support/workspace.ts";

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
