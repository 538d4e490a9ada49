/**
 * Published hooks, and the tools that they need.
 */
import { agent, tool } from "@jizai/jizai";
import { claude_hooks, type HookCallback } from "@jizai/jizai/middleware/claude_hooks";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { command, notices, ran, warnings } from "../../support/hooked.ts";
import { lines } from "../../support/transcript_lines.ts";

Deno.test("Claude: a tool of the workspace can have the name and the input that hooks expect", async () => {
  const files = memoryFiles({ "src/a.ts": "let x = 1;\n", ".env": "KEY=1\n" });
  const { tools = [], ...desk } = workspace(files);
  const own = tools.find(({ name }) => name === "edit_file");
  const input = z.object({ file_path: z.string(), old_string: z.string(), new_string: z.string() });
  const edit = tool({
    name: "Edit",
    description: "Edits a file",
    input,
    execute: ({ file_path, old_string: old, new_string }, ctx) =>
      own?.execute({ path: file_path.replace("/repo/", ""), old, new: new_string } as never, ctx), // as it takes it
  });
  const asked: string[] = [];
  const changes: string[] = [];
  const protect: HookCallback = (input) => {
    if (input.hook_event_name !== "PreToolUse") return {};
    const { file_path: path } = input.tool_input as { file_path: string };
    asked.push(path);
    return path.endsWith(".env") ? { decision: "block", reason: "No." } : {};
  };
  const changed: HookCallback = (input) => {
    if (input.hook_event_name === "FileChanged") changes.push(`${input.event} ${input.file_path}`);
  };
  const config = {
    PreToolUse: [{ matcher: "Edit|Write", hooks: [protect] }],
    FileChanged: [{ matcher: "a.ts", hooks: [changed] }],
  };
  const call = (file_path: string) => ["Edit", { file_path, old_string: "1", new_string: "2" }] as const;
  const { messages } = await agent({
    model: scripted({ calls: [call("/repo/src/a.ts"), call("/repo/.env")] }, "Done."),
    tools: [edit],
    use: [claude_hooks(config, { dialect: "claude", cwd: "/repo" }), desk],
  }).run("Edit").result;
  assertEquals(lines(messages).slice(2, 4), ["ok Edited.", "denied No."]);
  assertEquals([asked, changes], [["/repo/src/a.ts", "/repo/.env"], ["change /repo/src/a.ts"]]);
});

Deno.test("Claude: observing, asynchronous and blocking hooks work together", async () => {
  const seen = new Map<string | undefined, unknown>();
  const began: HookCallback = (input, id) => {
    if (input.hook_event_name === "PreToolUse") seen.set(id, input.tool_use_id);
    return Promise.resolve({ continue: true });
  };
  const ended: HookCallback = (_, id) => {
    seen.set(id, "ended");
    return Promise.resolve({ async: true, asyncTimeout: 30_000 });
  };
  const guard: HookCallback = (input) => {
    const { command = "" } = "tool_input" in input ? input.tool_input as { command?: string } : {};
    return command.includes("sleep") ? { decision: "block", stopReason: "Not here" } : {};
  };
  const config = {
    PreToolUse: [{ hooks: [began] }, { matcher: "Bash", hooks: [guard] }],
    PostToolUse: [{ hooks: [ended] }],
  };
  const calls = [command("a", "ls"), command("b", "sleep 9")];
  const { lines, events } = await ran(config, { calls, dialect: "claude" });
  assertEquals(lines.slice(1, -1), ["ok ran ls", "denied Blocked by a hook."]);
  assertEquals([[...seen], notices(events), warnings(events)], [[["a", "ended"], ["b", "b"]], [], []]);
});
