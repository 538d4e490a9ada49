import { agent, allow, type Middleware, type PersonAnswer, textOf, when } from "@jizai/jizai";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { scripted } from "@jizai/jizai/testing";
import { assert, assertEquals } from "@std/assert";
import { hostilePaths } from "../../support/hostile.ts";
import { before, type Call, read, work } from "../../support/workspace.ts";

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
