/**
 * Groups of calls: one after another, each with its hooks around it.
 */
import { agent, type Middleware, tool } from "@jizai/jizai";
import { claude_hooks, type HookCallback } from "@jizai/jizai/middleware/claude_hooks";
import { explain } from "@jizai/jizai/explain";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { command, hooks, ran, shell } from "../../support/hooked.ts";
import { lines } from "../../support/transcript_lines.ts";

/** Runs two Writes of one file in one response, with a hook that denies a Write of a file that exists. */
async function writeTwice(groups?: boolean): Promise<string[]> {
  const disk = new Map<string, string>();
  const noOverwrite: HookCallback = async (input) => {
    if (input.hook_event_name !== "PreToolUse" || input.tool_name !== "Write") return {};
    const { file_path } = input.tool_input as { file_path: string };
    if (!disk.has(file_path)) return {};
    return await Promise.resolve({
      hookSpecificOutput: {
        hookEventName: input.hook_event_name,
        permissionDecision: "deny",
        permissionDecisionReason: `${file_path} already exists.`,
      },
    });
  };
  const write = tool({
    name: "Write",
    description: "Writes a file",
    input: z.object({ file_path: z.string(), content: z.string() }),
    execute: ({ file_path, content }) => {
      disk.set(file_path, content);
      return `Wrote ${content}.`;
    },
  });
  const call = (content: string) => ["Write", { file_path: "/repo/a", content }] as const;
  const { messages } = await agent({
    model: scripted({ calls: [call("one"), call("two")] }, "Done."),
    tools: [write],
    use: [claude_hooks({ PreToolUse: [{ matcher: "Write", hooks: [noOverwrite] }] }, { dialect: "claude", groups })],
  }).run("Write").result;
  return lines(messages).slice(2, 4);
}

Deno.test("Claude: a guard against overwriting denies the second of two Writes of one file in one response", async () => {
  assertEquals(await writeTwice(), ["ok Wrote one.", "denied /repo/a already exists."]);
});

Deno.test("Claude: with groups: false, all hooks run before the first call", async () => {
  assertEquals(await writeTwice(false), ["ok Wrote one.", "ok Wrote two."]);
});

/** A limiter with one slot, taken in PreToolUse and freed in PostToolUse. */
function limiter() {
  let free = 1;
  let peak = 0;
  const waiting: (() => void)[] = [];
  const take: HookCallback = async () => {
    if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve));
    else free--;
    peak = Math.max(peak, 1 - free);
    return {};
  };
  const give: HookCallback = () => {
    const next = waiting.shift();
    if (next) next();
    else free++;
    return {};
  };
  return { take, give, peak: () => peak };
}

for (const dialect of ["qoder", "qodercli", "claude"] as const) {
  Deno.test(`Claude: a limiter that takes a slot in PreToolUse and frees it in PostToolUse never blocks in "${dialect}"`, async () => {
    const { take, give, peak } = limiter();
    const config = { PreToolUse: hooks(take), PostToolUse: hooks(give), PostToolUseFailure: hooks(give) };
    const { lines } = await ran(config, {
      dialect,
      calls: [command("a"), command("b"), command("c")],
      tools: [shell({
        execute(text) {
          if (text === "b") throw new Error("Broken");
          return `ran ${text}`;
        },
      })],
    });
    assertEquals(lines.slice(1, 4), ["ok ran a", "error Bash failed.", "ok ran c"]);
    assertEquals(peak(), 1);
  });
}

Deno.test("Claude: each call has PreToolUse, its work and PostToolUse before the next one, and PostToolBatch comes last", async () => {
  const log: string[] = [];
  const note: HookCallback = (input, id) => {
    log.push(`${input.hook_event_name} ${id ?? ""}`.trim());
    return {};
  };
  const config = { PreToolUse: hooks(note), PostToolUse: hooks(note), PostToolBatch: hooks(note) };
  await ran(config, { calls: [command("a"), command("b")], tools: [shell({ log })] });
  assertEquals(log, [
    ...["PreToolUse a", "a", "PostToolUse a"],
    ...["PreToolUse b", "b", "PostToolUse b"],
    "PostToolBatch",
  ]);
});

Deno.test("Claude: calls of read-only tools overlap", async () => {
  const log: string[] = [];
  const note: HookCallback = (input, id) => {
    log.push(`${input.hook_event_name} ${id}`);
    return {};
  };
  const look = { ...shell({ name: "Look", log }), readOnly: true };
  const calls = [command("a", "a", "Look"), command("b", "b", "Look"), command("c")];
  await ran({ PreToolUse: hooks(note) }, { calls, tools: [shell({ log }), look] });
  assertEquals(log, ["PreToolUse a", "PreToolUse b", "a", "b", "PreToolUse c", "c"]);
});

Deno.test("Claude: hooks that concern no call request no groups", () => {
  const groupsOf = (middleware: Middleware) =>
    explain(agent({ model: scripted(), use: [middleware] })).split("\n").find((line) => line.startsWith("groups"));
  assertEquals(groupsOf(claude_hooks({ Stop: hooks(() => ({})) })), "groups    not requested");
  assertEquals(groupsOf(claude_hooks({ PreToolUse: hooks(() => ({})) })), "groups    requested by claude_hooks");
});
