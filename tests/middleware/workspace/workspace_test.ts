import { agent, type Scope, textOf } from "@jizai/jizai";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { fileLaws, scripted, testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import { type Call, read, work } from "../../support/workspace.ts";

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
