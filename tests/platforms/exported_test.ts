import { assertEquals } from "@std/assert";
import { agent, type Middleware, tool } from "@jizai/jizai";
import { command_hooks } from "@jizai/jizai/middleware/command_hooks";
import { rpc_hooks } from "@jizai/jizai/middleware/rpc_hooks";
import { stdio } from "@jizai/jizai/middleware/rpc_hooks/stdio";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import { warnings } from "../support/rpc.ts";
import { lines } from "../support/transcript_lines.ts";

const program = new URL("exported.ts", import.meta.url).pathname;
const command = [Deno.execPath(), "run", "--allow-all", program];

/** Runs commands with an agent. */
async function run(use: Middleware) {
  const bash = tool({
    name: "bash",
    description: "Runs a command",
    input: z.object({ command: z.string() }),
    execute: ({ command }) => `ran ${command} ${"x".repeat(80)} end`,
  });
  const calls = ["ls", "rm -rf /"].map((command): readonly [string, unknown] => ["bash", { command }]);
  const run = agent({ model: scripted({ calls }, "Done."), tools: [bash], use: [use] }).run("Go");
  const events = await Array.fromAsync(run.events);
  const { messages } = await run.result;
  return { transcript: lines(messages).slice(2), warned: warnings(events) };
}

const shortened = "ok ran ls xxx\n\n[... OMITTED 76 chars ...]\n\nx end";

Deno.test("Export: middleware as a hook process of PicoClaw decides as in Jizai", async () => {
  const intercept = ["before_tool", "approve_tool"];
  await using hooks = rpc_hooks(
    {
      defaults: { interceptor_timeout_ms: 60_000 },
      processes: { exported: { enabled: true, command: [...command, "rpc"], intercept } },
    },
    { stdio },
  );
  assertEquals(await run(hooks), {
    transcript: [shortened, "denied Tool execution denied by approval hook: Dangerous", "assistant Done."],
    warned: [],
  });
});

Deno.test("Export: middleware as a command hook of Claude decides as in Jizai", async () => {
  const [program = "", ...args] = command;
  const matchers = (how: string) => [{ hooks: [{ type: "command" as const, command: program, args: [...args, how] }] }];
  const hooks = { PreToolUse: matchers("command"), PostToolUse: matchers("command") };
  assertEquals(await run(command_hooks({ hooks }, { dialect: "claude" })), {
    transcript: [shortened, "denied Dangerous", "assistant Done."],
    warned: [],
  });
});

Deno.test("Export: a command that fails exits with 1 and writes the reason to standard error", async () => {
  const [program = "", ...args] = command;
  const child = new Deno.Command(program, {
    args: [...args, "broken"],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode('{"hook_event_name":"PreToolUse","tool_name":"bash","tool_input":{}}'));
  await writer.close();
  const { code, stdout, stderr } = await child.output();
  const decoder = new TextDecoder();
  assertEquals([code, decoder.decode(stdout), decoder.decode(stderr).split("\n")[0]], [1, "", "Error: broken"]);
});
