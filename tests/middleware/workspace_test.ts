import {
  agent,
  allow,
  type Files,
  type Middleware,
  type PersonAnswer,
  type Scope,
  textOf,
  ToolError,
  when,
} from "@jizai/jizai";
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
    const original = files[key] as (...given: unknown[]) => unknown; // each takes a path first
    return [key, async (path: string, ...rest: unknown[]) => {
      await first(path);
      return await original(path, ...rest);
    }];
  });
  return { ...files, ...Object.fromEntries(changed) };
}

Deno.test("workspace() keeps the laws of middleware", async () => {
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

Deno.test("memoryFiles() keeps the laws of files", async () => {
  await fileLaws(() => memoryFiles());
});

Deno.test("memoryFiles() has no file where a folder is, and no folder where a file is", async () => {
  const files = memoryFiles({ "a/b": "b" });
  const { results } = await work(files, [[
    ["write_file", { path: "a", content: "x" }],
    ["write_file", { path: "a/b/c", content: "x" }],
    ["write_file", { path: ".", content: "x" }],
  ]]);
  assertEquals(results, [
    "error: It is a folder.",
    "error: Cannot write a/b/c: a/b is a file.",
    "error: It is a folder.",
  ]);
  assertEquals(await read(files, "a/b"), "b");
});

Deno.test("workspace() refuses a size that no file has", () => {
  assertThrows(() => workspace(memoryFiles(), { maxBytes: 0 }), RangeError, "Cannot take files of 0 bytes");
});

Deno.test("read_file gives a text as it is, or some of its lines", async () => {
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
    "error: It has 5 lines.",
    "\ufeff1\r\n2",
    "[It is empty.]",
    "error: The input of read_file is not valid: from: expected a whole number of 1 or more",
    "error: The input of read_file is not valid: lines: expected a whole number of 1 or more",
    "error: The input of read_file is not valid: path: expected a text",
  ]);
});

Deno.test("read_file is bounded, in lines and in characters", async () => {
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
    `${"😀".repeat(25_000)}\n[Lines 1 to 1 of 1, the last one cut.]`,
  ]);
  const small = await work([workspace(files, { maxBytes: 100 })], [[
    ["read_file", { path: "large.txt" }],
    ["edit_file", { path: "large.txt", old: "x", new: "y" }],
    ["write_file", { path: "large.txt", content: "y" }],
    ["write_file", { path: "new.txt", content: "ä".repeat(51) }],
    ["write_file", { path: "new.txt", content: "ä".repeat(50) }],
  ]]);
  assertEquals(small.results, [
    ...Array(3).fill("error: It has 101 bytes, and 100 are the most."),
    "error: It has 102 bytes, and 100 are the most.",
    "Created.",
  ]);
});

Deno.test("no tool takes for a text what is none", async () => {
  const files = memoryFiles({ "folder/a.txt": "a" });
  await write(files, "latin1", Uint8Array.of(0x63, 0x61, 0x66, 0xe9));
  await write(files, "zero", Uint8Array.of(0x61, 0, 0x61));
  const { results } = await work(files, [["latin1", "zero", "folder", "missing"].flatMap((path): readonly Call[] => [
    ["read_file", { path }],
    ["edit_file", { path, old: "a", new: "b" }],
  ])]);
  const errors = ["It is no text.", "It is no text.", "It is a folder.", "There is no such file."];
  assertEquals(results, errors.flatMap((error) => [`error: ${error}`, `error: ${error}`]));
  assertEquals((await files.read("latin1"))?.bytes, Uint8Array.of(0x63, 0x61, 0x66, 0xe9));
});

Deno.test("write_file makes a file or replaces it, and says which", async () => {
  const files = memoryFiles();
  const { results, told } = await work(files, [[
    ["write_file", { path: "a/b/c.txt", content: "1" }],
    ["write_file", { path: "a/b/c.txt", content: "2" }],
    ["write_file", { path: "a/b/c.txt", content: "2" }],
    ["write_file", { path: "./a//d.txt", content: "" }],
  ]]);
  assertEquals(results, ["Created.", "Replaced.", "It was like that already.", "Created."]);
  assertEquals(told.toSorted(), [
    "file.changed add a/b/c.txt",
    "file.changed add a/d.txt",
    "file.changed change a/b/c.txt",
  ]);
  assertEquals([await read(files, "a/b/c.txt"), await read(files, "a/d.txt")], ["2", ""]);
});

Deno.test("list_files lists a folder, or all that is beneath it", async () => {
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
    "error: There is no such folder.",
    "error: There is no such folder.",
    "error: The input of list_files is not valid: deep: expected true or false",
  ]);
  assertEquals((await work(memoryFiles(), [[["list_files", { path: "." }]]])).results, ["[It is empty.]"]);
});

Deno.test("list_files is bounded", async () => {
  const names = Array.from({ length: 1_001 }, (_, index) => `${1_000 + index}`);
  const files = memoryFiles(Object.fromEntries(names.map((name) => [name, ""])));
  const { results } = await work(files, [[["list_files", { path: "." }]]]);
  assertEquals(results, [`${names.slice(0, 1_000).join("\n")}\n[There is more than these 1000.]`]);
});

Deno.test("search_files finds lines by a text or a regular expression, and says them from where it looked", async () => {
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
  ]]);
  assertEquals(results, [
    "a.txt:2: two (2)\nsrc/b.txt:1: two\nsrc/core/c.txt:1: 2 times two",
    "b.txt:1: two\ncore/c.txt:1: 2 times two",
    "2: two (2)",
    "a.txt:2: two (2)\nsrc/b.txt:1: two",
    "d.txt:1: two",
    "[There is none.]",
    "error: Cannot search: `pattern` is empty.",
    "error: There is no such file or folder.",
    "error: Cannot search: Invalid regular expression: /(/u: Unterminated group.",
    "error: Cannot search: a pattern cannot look around, refer back, or name its groups.",
    "error: Cannot search: a pattern cannot look around, refer back, or name its groups.",
    "error: Cannot search: a pattern has 1000 characters at most.",
    "error: Cannot search: the pattern is too large.",
  ]);
});

Deno.test("search_files is bounded, in matches, in characters and in time", async () => {
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
    Array.from({ length: 100 }, (_, index) => `${index + 1}: x`).join("\n") + "\n[These are the first 100.]",
    `1: ${"y".repeat(300)}…`,
    "[There is more text than one search can read: say where to look.]",
  ]);
});

Deno.test("search_files has no pattern that never ends", async () => {
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
    result.replace("There is more text than one search can read: say where to look.", "There is none.")
  );
  assertEquals(none, [
    ...Array(9).fill("[There is none.]"),
    "error: Cannot edit: `old` is not in the file. It has to match exactly.",
  ]);
});

Deno.test("search_files matches what JavaScript matches", async () => {
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
      return lines.join("\n") || "[There is none.]";
    }),
  );
});

Deno.test("change_directory goes where the next calls start", async () => {
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
    "You are in src.",
    "top",
    "in src",
    "top",
    "You are in src/core.",
    "Created.",
    "You are in src.",
    "You are at the top.",
    "a.txt\nsrc/",
    "error: There is no such folder.",
    "error: There is no such folder.",
    "You are at the top.",
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

Deno.test("workspace() keeps apart where two runs are", async () => {
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
  assertEquals(read((await assistant.run("Go").result).messages), "There is no such file.");
});

Deno.test("calls of a turn start from the same place, also after a pause", async () => {
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

Deno.test("a guard sees which file it is, wherever the agent is", async () => {
  const files = memoryFiles({ "secrets/key": "hunter2" });
  const guard = permissions({
    deny: [{ tool: "read_file", when: (input) => JSON.stringify(input).includes('"secrets/'), why: "It is secret." }],
    otherwise: "allow",
  });
  for (const use of [[guard, workspace(files)], [workspace(files), guard]]) {
    const { results } = await work(use, [[["change_directory", { path: "secrets" }]], [["read_file", {
      path: "key",
    }]]]);
    assertEquals(results, ["You are in secrets.", "denied: It is secret."]);
  }
});

Deno.test("no hook, guard or condition makes a path leave the root", async () => {
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
    ['error: Cannot use the path "/secret": it has to begin in the workspace, and not at / or ~.'],
    ['error: Cannot use the path "../secret": it leaves the workspace.'],
    ["a"],
  ]);
});

Deno.test("several edits of one file are made in the order of the calls, those of other files meanwhile", async () => {
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
  const { results, told } = await work(files, [[...edits, ["read_file", { path: "b" }]]]);
  assertEquals(results, [...Array(15).fill("Edited."), "0,1,2,3,4,5"]);
  assertEquals(["a", "b", "c"].map((path) => told.filter((line) => line.endsWith(` ${path}`)).length), [5, 5, 5]);
  assertEquals(running.peak, 3);
});

Deno.test("edits of two runs, and of whoever else is faster, are all made", async () => {
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

Deno.test("an edit that has lost its place to somebody else is not made", async () => {
  const memory = memoryFiles({ "a": "one" });
  const files = before(memory, ["write"], (path) => write(memory, path, "two"));
  const { results } = await work(files, [[["edit_file", { path: "a", old: "one", new: "three" }]]]);
  assertEquals(results, ["error: Cannot edit: `old` is not in the file. It has to match exactly."]);
  assertEquals(await read(memory, "a"), "two");
});

Deno.test("a file that never stops changing is given up", async () => {
  const files: Files = { ...memoryFiles(), write: () => Promise.resolve(undefined) };
  const { results } = await work(files, [[["write_file", { path: "a", content: "x" }]]]);
  assertEquals(results, ["error: It changes again and again while it is written."]);
});

Deno.test("a place for files that fails says nothing of itself to the model, unless it means to", async () => {
  const failing = (error: Error): Files => ({ ...memoryFiles(), stat: () => Promise.reject(error) });
  const disk = new Error("EIO /srv/disk/7");
  const calls: readonly Call[] = [["read_file", { path: "a" }]];
  const away = await work(failing(new ToolError("The disk is away.")), [calls]);
  assertEquals(away.results, ["error: The disk is away."]);
  const { results, errors } = await work(failing(disk), [calls]);
  assertEquals([results, errors], [["error: read_file failed."], [disk]]);
});

Deno.test("a run that is stopped leaves its place in line, and those behind it go on", async () => {
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

Deno.test("who changes a file says so, where it happens", async () => {
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
    "tool.finished call_3 error Cannot edit: `old` is not in the file. It has to match exactly.",
  ]);
  assertEquals(events.filter(({ type }) => type === "file.changed"), [
    { type: "file.changed", turn: 1, call: "call_1", path: "a.txt", change: "add" },
    { type: "file.changed", turn: 1, call: "call_2", path: "a.txt", change: "change" },
  ]);
});

/** A step in which others change files, until all that they did can have been told. */
function meanwhile(change: () => Promise<void>) {
  return {
    text: "Done.",
    before: async () => {
      await change();
      await settled();
    },
  };
}

Deno.test("what others change while it runs is told too, and nothing twice", async () => {
  const files = memoryFiles({ "old.txt": "old" });
  const others = meanwhile(async () => {
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

Deno.test("one run is told what another one changes", async () => {
  const files = memoryFiles();
  const writer = agent({
    model: scripted({ calls: [["write_file", { path: "a", content: "a" }]] }, "Done."),
    use: [workspace(files)],
  });
  const { events } = await work(files, [], meanwhile(async () => void await writer.run("Go").result));
  assertEquals(events.filter(({ type }) => type === "file.changed"), [{
    type: "file.changed",
    path: "a",
    change: "add",
  }]);
});

Deno.test("nobody watches the files once the session is closed, however it ends", async () => {
  const memory = memoryFiles();
  let watching = 0;
  const files: Files = {
    ...memory,
    async watch(hear) {
      watching++;
      const end = await memory.watch?.(hear);
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

Deno.test("files that cannot be watched are no reason to fail, and the operator is told", async () => {
  const full = new Error("too many watches");
  const stuck = new Error("cannot close");
  const end = () => Promise.reject(stuck);
  for (const [watch, error] of [[() => Promise.reject(full), full], [() => Promise.resolve(end), stuck]] as const) {
    const files: Files = { ...memoryFiles({ "a": "a" }), watch };
    const { results, errors } = await work(files, [[["read_file", { path: "a" }]]]);
    assertEquals([results, errors], [["a"], [error]]);
  }
});

Deno.test("each run may have files of its own", async () => {
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

Deno.test("no hostile path reaches the files, whichever tool is given it, wherever the agent is", async () => {
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
  const { results, told } = await work(files, [calls]);
  assertEquals(
    results.map((result) => result.replace(/^denied: Cannot use the path ".*": (.*)\.$/s, "$1")),
    paths.flatMap(({ why }) => Array(6).fill(why)),
  );
  assertEquals([reached, told], [[], []]);

  const deep = await work(files, [[["change_directory", { path: "src/deep" }]], calls]);
  const strays = reached.filter((path) =>
    path !== "." && !/^[\w.-]+(\/[\w.-]+)*$/.test(path) || path.split("/").includes("..")
  );
  assertEquals([strays, deep.results.filter((result) => result === "a")], [[], []]);
});

Deno.test("no hostile edit spoils a file", async () => {
  const edits = [
    ...Object.entries(refusedEdits).flatMap(([why, edits]) =>
      edits.map(([text, old, by]) => ({ text, old, by, says: `error: ${why}`, after: text }))
    ),
    ...literalEdits.map(([text, old, by, after]) => ({ text, old, by, says: "Edited.", after })),
  ];
  assert(edits.length >= 100, `there are ${edits.length}`);
  const files = memoryFiles(Object.fromEntries(edits.map(({ text }, index) => [`${index}`, text])));
  const { results } = await work(files, [
    edits.map(({ old, by }, index): Call => ["edit_file", { path: `${index}`, old, new: by }]),
  ]);
  assertEquals(results, edits.map(({ says }) => says));
  for (const [index, { after }] of edits.entries()) assertEquals(await read(files, `${index}`), after);
});
