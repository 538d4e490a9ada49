import { agent, type Middleware } from "@jizai/jizai";
import type { Files } from "@jizai/jizai/kit";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { outline, scripted } from "@jizai/jizai/testing";
import { assertEquals } from "@std/assert";
import { settled } from "../../support/batch.ts";
import { work, write } from "../../support/workspace.ts";

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
