import { assert, assertEquals, assertRejects } from "@std/assert";
import { agent, type Event } from "@jizai/jizai";
import type { Files } from "@jizai/jizai/middleware/workspace";
import { workspace } from "@jizai/jizai/middleware/workspace";
import { directory } from "@jizai/jizai/middleware/workspace/directory";
import { collect, fileLaws, scripted } from "@jizai/jizai/testing";
import { hostilePaths, literalEdits, refusedEdits } from "../support/hostile.ts";
import { type Call, read, work, write } from "../support/workspace.ts";
import fs from "node:fs/promises";
import { folder } from "./folder.ts";

/** Creates a directory to work in, and files beside it that must not change. */
async function place() {
  const disk = await folder();
  const root = `${disk.path}/root`;
  await Deno.mkdir(`${root}/src/deep`, { recursive: true });
  await Deno.mkdir(`${disk.path}/outside`);
  await Deno.writeTextFile(`${disk.path}/secret.txt`, "hunter2");
  await Deno.writeTextFile(`${disk.path}/outside/secret.txt`, "hunter2");
  await Deno.writeTextFile(`${root}/a.txt`, "a");
  return { ...disk, root, files: directory(root), outside: () => tree(disk.path, ["root"]) };
}

/** Returns every file in a folder, with its text. Links are not followed. */
async function tree(path: string, but: readonly string[] = []): Promise<readonly string[]> {
  const entries = await Array.fromAsync(Deno.readDir(path));
  const lines = await Promise.all(
    entries.filter(({ name }) => !but.includes(name)).map(async ({ name, isDirectory, isFile }) => {
      if (isDirectory) return [`${name}/`, ...(await tree(`${path}/${name}`)).map((line) => `${name}/${line}`)];
      return [isFile ? `${name}: ${await Deno.readTextFile(`${path}/${name}`)}` : name];
    }),
  );
  return lines.flat().sort();
}

/** Runs a program in a folder, since Deno's own functions would need permissions that these tests do not have. */
async function sh(cwd: string, script: string): Promise<void> {
  const { success } = await new Deno.Command("sh", { args: ["-c", script], cwd }).output();
  assert(success, script);
}

/** Does `work`, and runs `swap` right before each file system call on a path with `within`, and `undo` right after it or at the end. */
async function between(
  key: "open" | "mkdir" | "readdir" | "rename",
  { within, swap, undo, back }: { within: string; swap: () => void; undo: () => void; back: boolean },
  work: () => Promise<void>,
): Promise<void> {
  const original = fs[key];
  let swapped = false;
  const turn = (to: boolean) => {
    if (swapped !== to) (to ? swap : undo)();
    swapped = to;
  };
  const attacked = new Proxy(original, {
    apply(_, on, given) {
      turn(swapped || String(given[0]).includes(within));
      const result = Reflect.apply(original, on, given);
      return back && result instanceof Promise ? result.finally(() => turn(false)) : result;
    },
  });
  Reflect.set(fs, key, attacked);
  try {
    await work();
  } finally {
    Reflect.set(fs, key, original);
    turn(false);
  }
}

/** Waits until a condition is true. */
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!await holds()) await new Promise((resolve) => setTimeout(resolve, 5));
}

Deno.test("on disk, directory() obeys the laws of files", async () => {
  await using disk = await folder();
  await fileLaws(async () => directory(await Deno.makeTempDir({ dir: disk.path })), { time: 60_000 });
});

Deno.test("on disk, directory() accepts a URL", async () => {
  await using at = await place();
  const files = directory(new URL(`${at.root}/`, `file://${Deno.cwd()}/`));
  assertEquals(await read(files, "a.txt"), "a");
});

Deno.test("on disk, a missing directory fails the tools and not the run", async () => {
  const files = directory("dist/none");
  await assertRejects(() => files.read("a.txt"), Error, "ENOENT");
  const { results, errors } = await work(files, [[["read_file", { path: "a.txt" }]]]);
  assertEquals([results, errors.length], [["error: read_file failed."], 2]);
});

Deno.test("on disk, no hostile path leaves the directory", async () => {
  await using at = await place();
  const [inside, outside] = [await tree(at.root), await at.outside()];
  const paths = Object.values(hostilePaths).flat();
  assert(paths.length >= 100, `there are ${paths.length}`);
  const calls = paths.flatMap((path): readonly Call[] => [
    ["read_file", { path }],
    ["write_file", { path, content: "spoilt" }],
    ["edit_file", { path, old: "hunter2", new: "spoilt" }],
    ["list_files", { path, deep: true }],
    ["search_files", { path, pattern: "hunter2" }],
    ["change_directory", { path }],
  ]);
  const { results } = await work(at.files, [calls]);
  assertEquals(results.filter((result) => !result.startsWith("denied: Cannot use the path ")), []);
  assertEquals([await tree(at.root), await at.outside()], [inside, outside]);
});

Deno.test("on disk, no hostile edit damages a file", async () => {
  await using at = await place();
  const refused = Object.entries(refusedEdits).flatMap(([why, edits]) =>
    edits.map(([text, old, by]) => ({ text, old, by, expected: `error: ${why}`, after: text }))
  );
  const literal = literalEdits.map(([text, old, by, after]) => ({ text, old, by, expected: "Edited.", after }));
  const edits = [...refused, ...literal];
  assert(edits.length >= 100, `there are ${edits.length}`);
  for (const [index, { text }] of edits.entries()) await write(at.files, `${index}`, text);
  const { results } = await work(at.files, [
    edits.map(({ old, by }, index): Call => ["edit_file", { path: `${index}`, old, new: by }]),
  ]);
  assertEquals(results, edits.map(({ expected }, index) => expected.replace("PATH", `"${index}"`)));
  for (const [index, { after }] of edits.entries()) assertEquals(await read(at.files, `${index}`), after);
});

Deno.test("on disk, links are followed only if they stay in the directory", async () => {
  await using at = await place();
  const outside = await at.outside();
  await sh(
    at.root,
    `ln -s ../secret.txt out; ln -s ../outside dir; ln -s / top; ln -s "$PWD/../secret.txt" absolute; ln -s out chain; ln -s nothing dangling
     ln -s loop loop; ln -s ../../outside src/up; ln -s a.txt in; ln -s src folder; ln -s ../root/a.txt around; mkfifo pipe`,
  );
  const leavesBy = [
    "out",
    "dir/secret.txt",
    "dir/new.txt",
    "dir/new/new.txt",
    "top/etc/passwd",
    "absolute",
    "chain",
    "src/up/secret.txt",
  ];
  const calls = leavesBy.flatMap((path): readonly Call[] => [
    ["read_file", { path }],
    ["write_file", { path, content: "spoilt" }],
    ["edit_file", { path, old: "hunter2", new: "spoilt" }],
    ["search_files", { path, pattern: "hunter2" }],
  ]);
  const { results } = await work(at.files, [calls]);
  const missing = ["dir/new.txt", "dir/new/new.txt"];
  assertEquals(
    results,
    leavesBy.flatMap((path) => {
      if (!missing.includes(path)) {
        return Array(4).fill(`error: Cannot open "${path}": it is a link out of the workspace.`);
      }
      return [
        `error: Cannot read "${path}": there is no such file.`,
        'error: Cannot open "dir": it is a link out of the workspace.',
        `error: Cannot edit "${path}": there is no such file.`,
        `error: Cannot search "${path}": there is no such file or folder.`,
      ];
    }),
  );
  assertEquals(await at.outside(), outside);

  const others = await work(at.files, [[["list_files", { path: ".", deep: true }]], [
    ["list_files", { path: "dir" }],
    ["change_directory", { path: "top" }],
    ["search_files", { path: ".", pattern: "hunter2" }],
    ["read_file", { path: "dangling" }],
    ["write_file", { path: "dangling", content: "x" }],
    ["write_file", { path: "loop/a", content: "x" }],
    ["read_file", { path: "pipe" }],
    ["edit_file", { path: "in", old: "a", new: "b" }],
    ["write_file", { path: "folder/new.txt", content: "new" }],
    ["write_file", { path: "a.txt/new.txt", content: "new" }],
  ], [["read_file", { path: "around" }]]]);
  assertEquals(others.results, [
    "a.txt\nsrc/\nsrc/deep/",
    'error: Cannot open "dir": it is a link out of the workspace.',
    'error: Cannot open "top": it is a link out of the workspace.',
    "[No line matches.]",
    'error: Cannot open "dangling": it is a broken link.',
    'error: Cannot open "dangling": it is a broken link.',
    'error: Cannot open "loop": it is a broken link.',
    'error: Cannot read "pipe": there is no such file.',
    "Edited.",
    "Created.",
    'error: Cannot open "a.txt": it is a file; expected a folder.',
    "b",
  ]);
  assertEquals(await read(at.files, "src/new.txt"), "new");
});

Deno.test("on disk, a write changes no other hard link, keeps the permissions, and leaves no draft", async () => {
  await using at = await place();
  await sh(at.root, "ln ../secret.txt hard; chmod 640 hard");
  const { results } = await work(at.files, [[
    ["edit_file", { path: "hard", old: "hunter2", new: "changed" }],
    ["write_file", { path: "hard", content: "spoilt" }],
  ]]);
  assertEquals(results, ["Edited.", "Replaced."]);
  assertEquals(await Deno.readTextFile(`${at.path}/secret.txt`), "hunter2");
  assertEquals(await tree(at.root), ["a.txt: a", "hard: spoilt", "src/", "src/deep/"]);
  assertEquals(((await Deno.stat(`${at.root}/hard`)).mode ?? 0) & 0o777, 0o640);
});

Deno.test("on disk, no link leads a write into a folder of version control or of hooks", async () => {
  await using at = await place();
  await sh(
    at.root,
    "mkdir -p .git/hooks; echo a > .git/hooks/pre-commit; ln -s .git/hooks h; ln -s .git/hooks/pre-commit p",
  );
  const { results } = await work(at.files, [[
    ["write_file", { path: "h/post-commit", content: "b" }],
    ["write_file", { path: "h/new/post-commit", content: "b" }],
    ["write_file", { path: "p", content: "b" }],
    ["edit_file", { path: "h/pre-commit", old: "a", new: "b" }],
  ]]);
  const refusal = (path: string) => `error: Cannot write "${path}": it is in a folder of version control or of hooks.`;
  assertEquals(results, [
    refusal(".git/hooks/post-commit"),
    refusal(".git/hooks/new"),
    refusal(".git/hooks/pre-commit"),
    refusal(".git/hooks/pre-commit"),
  ]);
  await assertRejects(() => at.files.delete("p"), Error, "it is in a folder of version control");
  assertEquals(await tree(`${at.root}/.git`), ["hooks/", "hooks/pre-commit: a\n"]);
});

Deno.test("on disk, a draft that a dead process left is replaced, and one of a living process is waited for", async () => {
  await using at = await place();
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode("a.txt"));
  const name = `.jizai-${new Uint8Array(hash).toHex().slice(0, 16)}`;
  await Deno.writeTextFile(`${at.root}/${name}`, "half");
  await Deno.utime(`${at.root}/${name}`, new Date(0), new Date(0));
  await write(at.files, "a.txt", "new");
  assertEquals([await read(at.files, "a.txt"), await tree(at.root)], ["new", ["a.txt: new", "src/", "src/deep/"]]);

  await Deno.writeTextFile(`${at.root}/${name}`, "half");
  const waiting = write(at.files, "a.txt", "newer");
  await new Promise((resolve) => setTimeout(resolve, 50));
  assertEquals(await read(at.files, "a.txt"), "new");
  await Deno.remove(`${at.root}/${name}`);
  await waiting;
  assertEquals(await read(at.files, "a.txt"), "newer");
});

Deno.test("on disk, a link that is created between two steps leads nowhere else", async () => {
  const calls: readonly Call[] = [
    ["read_file", { path: "dir/secret.txt" }],
    ["edit_file", { path: "dir/secret.txt", old: "mine", new: "spoilt" }],
    ["write_file", { path: "dir/secret.txt", content: "spoilt" }],
    ["write_file", { path: "dir/new.txt", content: "spoilt" }],
    ["write_file", { path: "dir/new/new.txt", content: "spoilt" }],
    ["search_files", { path: "dir", pattern: "hunter2" }],
    ["list_files", { path: "dir" }],
  ];
  const seen = new Set<string>();
  for (
    const [key, back] of [
      ["open", false],
      ["open", true],
      ["mkdir", false],
      ["mkdir", true],
      [
        "readdir",
        false,
      ],
      ["rename", false],
      ["rename", true],
    ] as const
  ) {
    for (const call of calls) {
      await using at = await place();
      await write(at.files, "dir/secret.txt", "mine");
      await sh(at.root, "ln -s ../outside link");
      const outside = await at.outside();
      const moved = (...names: readonly (readonly [string, string])[]) => () =>
        names.forEach(([from, to]) => Deno.renameSync(`${at.root}/${from}`, `${at.root}/${to}`));
      const swap = moved(["dir", "kept"], ["link", "dir"]);
      const undo = moved(["dir", "link"], ["kept", "dir"]);
      const { watch: _, ...files } = at.files;
      await between(key, { within: "root/dir", swap, undo, back }, async () => {
        for (const result of (await work(files, [[call]])).results) seen.add(result);
      });
      const made = /\/(new\/|\.jizai-[0-9a-f]{16}: )$/; // empty: created before its real path can be checked
      assertEquals((await at.outside()).filter((line) => !made.test(line)), outside);
    }
  }
  assertEquals([...seen].toSorted(), [
    "Created.",
    "Edited.",
    "Replaced.",
    "[No line matches.]",
    'error: Cannot open "dir": it is a link out of the workspace.',
    'error: Cannot open "dir/new": it is a link out of the workspace.',
    'error: Cannot open "dir/new": its folder was replaced in the meantime.',
    'error: Cannot open "dir/new.txt": its folder was replaced in the meantime.',
    'error: Cannot open "dir/new/new.txt": its folder was replaced in the meantime.',
    'error: Cannot open "dir/secret.txt": it was replaced in the meantime.',
    'error: Cannot open "dir/secret.txt": its folder was replaced in the meantime.',
    "error: write_file failed.",
    "mine",
    "secret.txt",
  ]);
});

Deno.test("on disk, edits of several agents, each with its own directory(), are all kept", async () => {
  await using at = await place();
  await write(at.files, "list", "-");
  const edits = async (name: string) => {
    const calls = [1, 2, 3, 4, 5].map((n): Call => ["edit_file", { path: "list", old: "-", new: `${name}${n} -` }]);
    return (await work(directory(at.root), [calls])).results;
  };
  const results = await Promise.all(["a", "b", "c", "d"].map(edits));
  assertEquals(results.flat(), Array(20).fill("Edited."));
  const made = (await read(at.files, "list"))?.split(" ") ?? [];
  assertEquals(["a", "b", "c", "d"].map((name) => made.filter((edit) => edit.startsWith(name)).join(" ")), [
    "a1 a2 a3 a4 a5",
    "b1 b2 b3 b4 b5",
    "c1 c2 c3 c4 c5",
    "d1 d2 d3 d4 d5",
  ]);
});

Deno.test("on disk, a reader never sees a half-written file", async () => {
  await using at = await place();
  const other = directory(at.root);
  let open = true;
  const seen = new Set<string>();
  const look = async () => {
    while (open) seen.add(new Set(await read(other, "a.txt")).size > 1 ? "half" : "whole");
  };
  const change = async () => {
    for (let turn = 0; turn < 50; turn++) {
      await write(at.files, "a.txt", "ab".charAt(turn % 2).repeat(turn % 3 ? 500_000 : 10));
    }
    open = false;
  };
  await Promise.all([change(), look(), look()]);
  assertEquals([...seen], ["whole"]);
});

/** Makes an agent write `mine.txt` while another program changes files. Returns the events about files. */
async function reported(
  files: Files,
  others: (received: (path: string, change: string) => Promise<void>) => Promise<void>,
): Promise<readonly Event[]> {
  const received: Event[] = [];
  const receive = (path: string, change: string) =>
    until(() =>
      received.some((event) => event.type === "file.changed" && event.path === path && event.change === change)
    );
  const model = scripted(
    { calls: [["write_file", { path: "mine.txt", content: "mine" }]] },
    { calls: [["edit_file", { path: "mine.txt", old: "mine", new: "mine too" }]] },
    { text: "Done.", before: () => others(receive) },
  );
  const observe = (event: Event) => {
    if (event.type === "file.changed") received.push(event);
  };
  await collect(agent({ model, use: [workspace(files)], observe }).run("Go"));
  return received;
}

Deno.test("on disk, changes of others during the run are emitted once, those of the agent not again", async () => {
  await using at = await place();
  await Deno.writeTextFile(`${at.path}/new`, "new");
  await Deno.mkdir(`${at.root}/.git`);
  const events = await reported(at.files, async (received) => {
    await Deno.writeTextFile(`${at.root}/.git/index`, "noise");
    await Deno.mkdir(`${at.root}/src/folder`);
    await sh(at.root, "ln -s ../secret.txt link");
    await Deno.rename(`${at.path}/new`, `${at.root}/src/new.txt`);
    await received("src/new.txt", "add");
    await Deno.remove(`${at.root}/src/new.txt`);
    await received("src/new.txt", "unlink");
    await Deno.writeTextFile(`${at.root}/a.txt`, "more", { append: true });
    await received("a.txt", "change");
  });
  assertEquals(events, [
    { type: "file.changed", turn: 1, call: "call_1", path: "mine.txt", change: "add" },
    { type: "file.changed", turn: 2, call: "call_2", path: "mine.txt", change: "change" },
    { type: "file.changed", path: "src/new.txt", change: "add" },
    { type: "file.changed", path: "src/new.txt", change: "unlink" },
    { type: "file.changed", path: "a.txt", change: "change" },
  ]);
});

Deno.test("on disk, folders that are moved in and out are emitted file by file", async () => {
  await using at = await place();
  for (const path of ["new/a.txt", "new/sub/b.txt", "new/node_modules/c.txt"]) {
    await write(directory(at.path), path, "new");
  }
  await Deno.writeTextFile(`${at.root}/src/deep/old.txt`, "old");
  await Deno.writeTextFile(`${at.path}/saved`, "saved");
  const events = await reported(at.files, async (received) => {
    await Deno.rename(`${at.path}/new`, `${at.root}/new`);
    await received("new/sub/b.txt", "add");
    await Deno.writeTextFile(`${at.root}/new/sub/b.txt`, "more", { append: true });
    await received("new/sub/b.txt", "change");
    await Deno.rename(`${at.root}/src`, `${at.path}/src`);
    await received("src/deep/old.txt", "unlink");
    await Deno.rename(`${at.path}/saved`, `${at.root}/a.txt`);
    await received("a.txt", "change");
  });
  assertEquals(events.slice(2), [
    { type: "file.changed", path: "new/a.txt", change: "add" },
    { type: "file.changed", path: "new/sub/b.txt", change: "add" },
    { type: "file.changed", path: "new/sub/b.txt", change: "change" },
    { type: "file.changed", path: "src/deep/old.txt", change: "unlink" },
    { type: "file.changed", path: "a.txt", change: "change" },
  ]);
});

Deno.test("on disk, changes of others to a file that the agent wrote are emitted", async () => {
  await using at = await place();
  const events = await reported(at.files, async (received) => {
    await Deno.remove(`${at.root}/mine.txt`);
    await received("mine.txt", "unlink");
  });
  assertEquals(events.at(-1), { type: "file.changed", path: "mine.txt", change: "unlink" });
});

Deno.test("on disk, a directory is not watched after the run", async () => {
  await using at = await place();
  const { events } = await collect(agent({ model: scripted("Hi"), use: [workspace(at.files)] }).run("Go"));
  await Deno.writeTextFile(`${at.root}/late.txt`, "late");
  assertEquals(events.filter(({ type }) => type === "file.changed"), []); // and the sanitizer finds no watcher
});
