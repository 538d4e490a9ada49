import { agent, allow, type Middleware, type PersonAnswer, type Scope, textOf, ToolError, when } from "@jizai/jizai";
import type { Files } from "@jizai/jizai/kit";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { fileLaws, outline, scripted, testMiddleware } from "@jizai/jizai/testing";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { gauge, settled } from "../support/batch.ts";
import { hostilePaths, literalEdits, refusedEdits } from "../support/hostile.ts";
import { type Call, read, work, write } from "../support/workspace.ts";

/** `files` with something done before each of these functions. */
function before(files: Files, keys: readonly (keyof Files)[], first: (path: string) => unknown): Files {
  const changed = keys.map((key) => {
    const original = files[key] as (...given: unknown[]) => unknown; // the first parameter of each method is a path
    return [key, async (path: string, ...rest: unknown[]) => {
      await first(path);
      return await original(path, ...rest);
    }];
  });
  return { ...files, ...Object.fromEntries(changed) };
}

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

Deno.test("write_file creates or replaces a file, and returns which", async () => {
  const files = memoryFiles();
  const { results, reported } = await work(files, [[
    ["write_file", { path: "a/b/c.txt", content: "1" }],
    ["write_file", { path: "a/b/c.txt", content: "2" }],
    ["write_file", { path: "a/b/c.txt", content: "2" }],
    ["write_file", { path: "./a//d.txt", content: "" }],
  ]]);
  assertEquals(results, ["Created.", "Replaced.", "Unchanged: the file has this content already.", "Created."]);
  assertEquals(reported.toSorted(), [
    "file.changed add a/b/c.txt",
    "file.changed add a/d.txt",
    "file.changed change a/b/c.txt",
  ]);
  assertEquals([await read(files, "a/b/c.txt"), await read(files, "a/d.txt")], ["2", ""]);
});

Deno.test("write_file and edit_file refuse folders whose files other programs execute", async () => {
  const inside = [
    ".git/hooks/pre-commit",
    ".git",
    ".GIT/config",
    "sub/.git/hooks/post-checkout",
    "git~1/hooks/pre-commit",
    "bare.git/hooks/post-receive",
    ".hg/hgrc",
    ".husky/pre-push",
    ".githooks/pre-commit",
    ".github/hooks/guard.json",
    ".claude/settings.json",
    "x/.claude/hooks/guard.sh",
  ];
  const beside = [
    ".gitignore",
    ".github/workflows/ci.yml",
    "src/hooks/use_state.ts",
    ".claude/commands/a.md",
    "git.txt",
  ];
  const files = memoryFiles(Object.fromEntries(inside.slice(2).map((path) => [path, "a"])));
  const { results } = await work(files, [[
    ...inside.map((path): Call => ["write_file", { path, content: "b" }]),
    ...inside.slice(2).map((path): Call => ["edit_file", { path, old: "a", new: "b" }]),
    ...beside.map((path): Call => ["write_file", { path, content: "b" }]),
  ]]);
  const refusal = (path: string) => `error: Cannot write "${path}": it is in a folder of version control or of hooks.`;
  assertEquals(results, [
    ...inside.map(refusal),
    ...inside.slice(2).map(refusal),
    ...beside.map(() => "Created."),
  ]);
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

Deno.test("change_directory changes the folder in which the calls of the next turn start", async () => {
  const files = memoryFiles({ "a.txt": "top", "src/a.txt": "in src", "src/core/a.txt": "in core" });
  const { results, events } = await work(files, [
    [["change_directory", { path: "src" }], ["read_file", { path: "a.txt" }]],
    [["read_file", { path: "a.txt" }], ["read_file", { path: "../a.txt" }], ["change_directory", { path: "./core/" }]],
    [["write_file", { path: "b.txt", content: "b" }], ["change_directory", { path: ".." }], ["change_directory", {
      path: "../..",
    }]],
    [["list_files", { path: "." }], ["change_directory", { path: "none" }], ["change_directory", { path: "a.txt" }]],
    [["change_directory", { path: "." }], ["change_directory", { path: ".." }]],
  ]);
  assertEquals(results, [
    "The current folder is src.",
    "top",
    "in src",
    "top",
    "The current folder is src/core.",
    "Created.",
    "The current folder is src.",
    "The current folder is the root.",
    "a.txt\nsrc/",
    'error: Cannot change to "none": there is no such folder.',
    'error: Cannot change to "a.txt": there is no such folder.',
    "The current folder is the root.",
    'denied: Cannot use the path "..": it leaves the workspace.',
  ]);
  assertEquals(events.filter(({ type }) => type === "cwd.changed"), [
    { type: "cwd.changed", turn: 1, call: "call_1", from: ".", to: "src" },
    { type: "cwd.changed", turn: 2, call: "call_5", from: "src", to: "src/core" },
    { type: "cwd.changed", turn: 3, call: "call_7", from: "src/core", to: "src" },
    { type: "cwd.changed", turn: 3, call: "call_8", from: "src", to: "." },
  ]);
  assertEquals(await read(files, "src/core/b.txt"), "b");
});

Deno.test("two runs of one agent have separate current folders", async () => {
  const files = memoryFiles({ "a/x": "in a", "b/x": "in b" });
  const model = scripted(
    { calls: [["change_directory", { path: "a" }]] },
    { calls: [["change_directory", { path: "b" }]] },
    { calls: [["read_file", { path: "x" }]] },
    { calls: [["read_file", { path: "x" }]] },
    "Done.",
    "Done.",
    { calls: [["read_file", { path: "x" }]] },
    "Done.",
  );
  const assistant = agent({ model, use: [workspace(files)] });
  const read = (messages: Awaited<ReturnType<typeof assistant.run>["result"]>["messages"]) =>
    messages.flatMap((message) => message.role === "tool" ? message.results.map(textOf) : []).at(-1);
  const runs = [assistant.run("Go"), assistant.run("Go")];
  assertEquals((await Promise.all(runs.map(({ result }) => result))).map(({ messages }) => read(messages)), [
    "in a",
    "in b",
  ]);
  assertEquals(read((await assistant.run("Go").result).messages), 'Cannot read "x": there is no such file.');
});

Deno.test("all calls of a turn start in the same folder, also after a pause", async () => {
  const files = memoryFiles({ "src/a.txt": "" });
  const model = scripted({
    calls: [["write_file", { path: "b.txt", content: "b" }], ["change_directory", { path: "src" }]],
  }, "Done.");
  const assistant = agent({ model, use: [workspace(files), permissions({ ask: ["write_file"] })] });
  const paused = await assistant.run("Go").result;
  assertEquals(paused.questions.map(({ input }) => input), [{ path: "b.txt", content: "b" }]);
  const answers: readonly PersonAnswer[] = [{ callId: "call_1", type: "approve" }];
  const { status } = await assistant.resume({ session: paused.session, answers }).result;
  assertEquals([status, await read(files, "b.txt")], ["done", "b"]);
});

Deno.test("a guard sees the path from the root, whatever the current folder is", async () => {
  const files = memoryFiles({ "secrets/key": "hunter2" });
  const guard = permissions({
    deny: [{ tool: "read_file", when: (input) => JSON.stringify(input).includes('"secrets/'), why: "It is secret." }],
    otherwise: "allow",
  });
  for (const use of [[guard, workspace(files)], [workspace(files), guard]]) {
    const { results } = await work(use, [[["change_directory", { path: "secrets" }]], [["read_file", {
      path: "key",
    }]]]);
    assertEquals(results, ["The current folder is secrets.", "denied: It is secret."]);
  }
});

Deno.test("no path leaves the root after a hook, a guard or a condition has changed it", async () => {
  const rewrite: Middleware = { name: "rewrite", tool: (_, next) => next({ input: { path: "../secret" } }) };
  const edit: Middleware = { name: "edit", approval: () => Promise.resolve(allow({ input: { path: "/secret" } })) };
  const files = memoryFiles({ "a.txt": "a" });
  const last = async (use: readonly Middleware[], path: string) =>
    (await work(use, [[["read_file", { path }]]])).results;
  assertEquals([
    await last([workspace(files), rewrite], "a.txt"),
    await last([workspace(files), edit], "a.txt"),
    await last([when(() => false, workspace(files))], "../secret"),
    await last([when(() => false, workspace(files))], "./a.txt"),
  ], [
    ['error: Cannot use the path "../secret": it leaves the workspace.'],
    ['error: Cannot use the path "/secret": it begins with / or ~; expected a path within the workspace.'],
    ['error: Cannot use the path "../secret": it leaves the workspace.'],
    ["a"],
  ]);
});

Deno.test("edits of one file run in the order of the calls, edits of other files in parallel", async () => {
  const running = gauge();
  const log: string[] = [];
  const memory = memoryFiles({ "a": "0", "b": "0", "c": "0" });
  const delays = [3, 1, 0, 2, 1];
  const files: Files = {
    ...memory,
    write: (path, bytes, version) =>
      running.during(async () => {
        for (let turn = delays[log.length % delays.length] ?? 0; turn > 0; turn--) await settled();
        log.push(path);
        return await memory.write(path, bytes, version);
      }),
  };
  const edits = [1, 2, 3, 4, 5].flatMap((n) =>
    ["a", "b", "c"].map((path): Call => [
      "edit_file",
      { path: n % 2 ? path : `./${path}`, old: `${n - 1}`, new: `${n - 1},${n}` },
    ])
  );
  const { results, reported } = await work(files, [[...edits, ["read_file", { path: "b" }]]]);
  assertEquals(results, [...Array(15).fill("Edited."), "0,1,2,3,4,5"]);
  assertEquals(["a", "b", "c"].map((path) => reported.filter((line) => line.endsWith(` ${path}`)).length), [5, 5, 5]);
  assertEquals(running.peak, 3);
});

Deno.test("edits of two runs and of other writers are all kept", async () => {
  const memory = memoryFiles({ "list": "-\n" });
  let others = 0;
  const files = before(memory, ["write"], async (path) => {
    await settled();
    if (others++ < 5) await write(memory, path, `other ${others}\n${await read(memory, path)}`);
  });
  const calls = (name: string): readonly Call[] =>
    [1, 2, 3].map((n) => ["edit_file", { path: "list", old: "-\n", new: `${name}${n}\n-\n` }]);
  const assistant = agent({
    model: scripted({ calls: calls("a") }, { calls: calls("b") }, "Done.", "Done."),
    use: [workspace(files)],
  });
  await Promise.all([assistant.run("Go").result, assistant.run("Go").result]);
  const lines = (await read(memory, "list"))?.trim().split("\n") ?? [];
  assertEquals(lines.toSorted(), [
    "-",
    "a1",
    "a2",
    "a3",
    "b1",
    "b2",
    "b3",
    "other 1",
    "other 2",
    "other 3",
    "other 4",
    "other 5",
  ]);
  assertEquals(lines.filter((line) => line.startsWith("a")), ["a1", "a2", "a3"]);
});

Deno.test("an edit fails if another writer has removed its text", async () => {
  const memory = memoryFiles({ "a": "one" });
  const files = before(memory, ["write"], (path) => write(memory, path, "two"));
  const { results } = await work(files, [[["edit_file", { path: "a", old: "one", new: "three" }]]]);
  assertEquals(results, ['error: Cannot edit "a": `old` does not occur in the file; expected an exact match.']);
  assertEquals(await read(memory, "a"), "two");
});

Deno.test("write_file stops after 20 concurrent changes", async () => {
  const files: Files = { ...memoryFiles(), write: () => Promise.resolve(undefined) };
  const { results } = await work(files, [[["write_file", { path: "a", content: "x" }]]]);
  assertEquals(results, ['error: Cannot write "a": others changed it 20 times while it was written.']);
});

Deno.test("a failure of the files is hidden from the model, unless it is a ToolError", async () => {
  const failing = (error: Error): Files => ({ ...memoryFiles(), stat: () => Promise.reject(error) });
  const disk = new Error("EIO /srv/disk/7");
  const calls: readonly Call[] = [["read_file", { path: "a" }]];
  const away = await work(failing(new ToolError("The disk is away.")), [calls]);
  assertEquals(away.results, ["error: The disk is away."]);
  const { results, errors } = await work(failing(disk), [calls]);
  assertEquals([results, errors], [["error: read_file failed."], [disk]]);
});

Deno.test("a stopped run releases its locks and makes no further edit", async () => {
  const reached = Promise.withResolvers<void>();
  const free = Promise.withResolvers<void>();
  const memory = memoryFiles({ "a": "-" });
  let first = true;
  const files: Files = {
    ...memory,
    async write(path, bytes, version) {
      if (first) {
        first = false;
        reached.resolve();
        await free.promise;
      }
      return await memory.write(path, bytes, version);
    },
  };
  const calls = [1, 2].map((n): Call => ["edit_file", { path: "a", old: "-", new: `${n}-` }]);
  const handle = agent({ model: scripted({ calls }, "Done."), use: [workspace(files)], limits: { grace: 0 } }).run(
    "Go",
  );
  await reached.promise;
  handle.stop();
  const { status } = await handle.result;
  free.resolve();
  await settled();
  assertEquals([status, await read(memory, "a")], ["aborted", "1-"]);
});

Deno.test("file.changed is emitted before the call finishes", async () => {
  const { events } = await work(memoryFiles(), [[
    ["write_file", { path: "a.txt", content: "one" }],
    ["edit_file", { path: "a.txt", old: "one", new: "two" }],
    ["edit_file", { path: "a.txt", old: "one", new: "three" }],
  ]]);
  assertEquals(outline(events).filter((line) => /^(tool\.f|file)/.test(line)), [
    "file.changed add a.txt",
    "file.changed change a.txt",
    "tool.finished call_1 ok Created.",
    "tool.finished call_2 ok Edited.",
    'tool.finished call_3 error Cannot edit "a.txt": `old` does not occur in the file; expected an exact match.',
  ]);
  assertEquals(events.filter(({ type }) => type === "file.changed"), [
    { type: "file.changed", turn: 1, call: "call_1", path: "a.txt", change: "add" },
    { type: "file.changed", turn: 1, call: "call_2", path: "a.txt", change: "change" },
  ]);
});

/** A step during which other programs change files. It waits until their changes can have been reported. */
function whileOthersWrite(change: () => Promise<void>) {
  return {
    text: "Done.",
    before: async () => {
      await change();
      await settled();
    },
  };
}

Deno.test("changes of others during the run emit file.changed once", async () => {
  const files = memoryFiles({ "old.txt": "old" });
  const others = whileOthersWrite(async () => {
    await write(files, "mine.txt", "theirs");
    await settled();
    await write(files, "new.txt", "new");
    await files.delete("old.txt");
    await write(files, ".git/index", "noise");
    await files.delete("mine.txt");
  });
  const { events } = await work(files, [[["write_file", { path: "mine.txt", content: "mine" }]]], others);
  assertEquals(events.filter(({ type }) => type === "file.changed"), [
    { type: "file.changed", turn: 1, call: "call_1", path: "mine.txt", change: "add" },
    { type: "file.changed", path: "mine.txt", change: "change" },
    { type: "file.changed", path: "new.txt", change: "add" },
    { type: "file.changed", path: "old.txt", change: "unlink" },
    { type: "file.changed", path: "mine.txt", change: "unlink" },
  ]);
});

Deno.test("a run sees the changes of another run", async () => {
  const files = memoryFiles();
  const writer = agent({
    model: scripted({ calls: [["write_file", { path: "a", content: "a" }]] }, "Done."),
    use: [workspace(files)],
  });
  const { events } = await work(files, [], whileOthersWrite(async () => void await writer.run("Go").result));
  assertEquals(events.filter(({ type }) => type === "file.changed"), [{
    type: "file.changed",
    path: "a",
    change: "add",
  }]);
});

Deno.test("the files are not watched after the session closes, however the run ends", async () => {
  const memory = memoryFiles();
  let watching = 0;
  const files: Files = {
    ...memory,
    async watch(receive) {
      watching++;
      const end = await memory.watch?.(receive);
      return async () => {
        watching--;
        await end?.();
      };
    },
  };
  const ends = [
    { text: "Done." },
    { error: new Error("refused") },
    { calls: [["write_file", { path: "a", content: "a" }]] as const },
  ];
  for (const end of ends) {
    const assistant = agent({ model: scripted(end), use: [workspace(files), permissions({ ask: ["write_file"] })] });
    await assistant.run("Go").result;
    assertEquals(watching, 0);
  }
});

Deno.test("a failing watch is reported to the operator and does not fail the run", async () => {
  const full = new Error("too many watches");
  const stuck = new Error("cannot close");
  const end = () => Promise.reject(stuck);
  for (const [watch, error] of [[() => Promise.reject(full), full], [() => Promise.resolve(end), stuck]] as const) {
    const files: Files = { ...memoryFiles({ "a": "a" }), watch };
    const { results, errors } = await work(files, [[["read_file", { path: "a" }]]]);
    assertEquals([results, errors], [["a"], [error]]);
  }
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

Deno.test("no hostile path reaches the files through any tool, from any current folder", async () => {
  const reached: string[] = [];
  const memory = memoryFiles({ "src/deep/a.txt": "a" });
  const files = before(memory, ["stat", "read", "write"], (path) => reached.push(path));
  const paths = Object.entries(hostilePaths).flatMap(([why, paths]) => paths.map((path) => ({ path, why })));
  assert(paths.length >= 100, `there are ${paths.length}`);
  const calls = paths.flatMap(({ path }): readonly Call[] => [
    ["read_file", { path }],
    ["write_file", { path, content: "x" }],
    ["edit_file", { path, old: "a", new: "x" }],
    ["list_files", { path, deep: true }],
    ["search_files", { path, pattern: "a" }],
    ["change_directory", { path }],
  ]);
  const { results, reported } = await work(files, [calls]);
  assertEquals(
    results.map((result) => result.replace(/^denied: Cannot use the path ".*": (.*)\.$/s, "$1")),
    paths.flatMap(({ why }) => Array(6).fill(why)),
  );
  assertEquals([reached, reported], [[], []]);

  const deep = await work(files, [[["change_directory", { path: "src/deep" }]], calls]);
  const strays = reached.filter((path) =>
    path !== "." && !/^[\w.-]+(\/[\w.-]+)*$/.test(path) || path.split("/").includes("..")
  );
  assertEquals([strays, deep.results.filter((result) => result === "a")], [[], []]);
});

Deno.test("no hostile edit damages a file", async () => {
  const edits = [
    ...Object.entries(refusedEdits).flatMap(([why, edits]) =>
      edits.map(([text, old, by]) => ({ text, old, by, expected: `error: ${why}`, after: text }))
    ),
    ...literalEdits.map(([text, old, by, after]) => ({ text, old, by, expected: "Edited.", after })),
  ];
  assert(edits.length >= 100, `there are ${edits.length}`);
  const files = memoryFiles(Object.fromEntries(edits.map(({ text }, index) => [`${index}`, text])));
  const { results } = await work(files, [
    edits.map(({ old, by }, index): Call => ["edit_file", { path: `${index}`, old, new: by }]),
  ]);
  assertEquals(results, edits.map(({ expected }, index) => expected.replace("PATH", `"${index}"`)));
  for (const [index, { after }] of edits.entries()) assertEquals(await read(files, `${index}`), after);
});
