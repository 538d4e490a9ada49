/**
 * The tools of `workspace()` that write files, and the reports of changes by others.
 */
import { agent, type Middleware, ToolError } from "@jizai/jizai";
import type { Files } from "@jizai/jizai/middleware/workspace";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { outline, scripted } from "@jizai/jizai/testing";
import { assert, assertEquals } from "@std/assert";
import { gauge, settled } from "../../support/batch.ts";
import { literalEdits, refusedEdits } from "../../support/hostile.ts";
import { before, type Call, read, work, write } from "../../support/workspace.ts";

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
  const hung = Promise.withResolvers<never>();
  const begun = Promise.withResolvers<void>();
  const hang: Middleware = {
    name: "hang",
    prompt() {
      begun.resolve();
      return hung.promise;
    },
  };
  const run = agent({ model: scripted(), use: [workspace(files), hang], limits: { grace: 1 } }).run("Go");
  await begun.promise;
  run.stop();
  assertEquals([(await run.result).status, watching], ["aborted", 0]);
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
