/**
 * A program that runs hooks as processes, and is such a hook itself. It runs on every runtime.
 *
 * @module
 */
import { agent, type Middleware, tool } from "../../mod.ts";
import { command_hooks } from "../../middleware/foreign_hooks/claude/command_hooks.ts";
import { rpc_hooks } from "../../middleware/foreign_hooks/picoclaw/rpc_hooks.ts";
import { stdio } from "../../middleware/foreign_hooks/picoclaw/rpc_hooks/stdio.ts";
import { scripted } from "../../src/model/scripted.ts";
import process from "node:process";
import { createInterface } from "node:readline";
import * as z from "zod";

const [, self = "", does] = process.argv;
const why = `Dangerous, ${process.env.MOOD}`;
const isDangerous = (input: unknown) => JSON.stringify(input ?? {}).includes("rm");
const program = [process.execPath, ..."deno" in process.versions ? ["run", "--allow-all"] : [], self];

if (does === "rpc") await answerMessages();
else if (does === "command") await answerCommand();
else {
  const gate = { enabled: true, command: [...program, "rpc"], intercept: ["before_tool", "approve_tool"] };
  const defaults = { interceptor_timeout_ms: 60_000, approval_timeout_ms: 60_000 };
  const rpc = rpc_hooks({ defaults, processes: { gate } }, { stdio });
  await run(rpc);
  await rpc[Symbol.asyncDispose]();
  const command = [...program, "command"].map((word) => `'${word}'`).join(" ");
  const hooks = [{ type: "command", command } as const];
  await run(command_hooks({ hooks: { PreToolUse: [{ hooks }] } }, { dialect: "claude" }));
}

/** Answers the messages of PicoClaw. */
async function answerMessages(): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) continue;
    const denied = { approved: false, reason: why };
    const results: Readonly<Record<string, unknown>> = {
      "hook.hello": { ok: true, name: "gate" },
      "hook.before_tool": { action: "continue" },
      "hook.approve_tool": isDangerous(params.arguments) ? denied : { approved: true },
    };
    process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result: results[method] })}\n`);
  }
}

/** Answers one event of Claude. */
async function answerCommand(): Promise<void> {
  const { tool_input } = JSON.parse((await Array.fromAsync(process.stdin.setEncoding("utf8"))).join(""));
  const denied = { hookEventName: "PreToolUse", permissionDecision: "deny", permissionDecisionReason: why };
  process.stdout.write(JSON.stringify(isDangerous(tool_input) ? { hookSpecificOutput: denied } : {}));
}

/** Prints the results of two calls. */
async function run(use: Middleware): Promise<void> {
  const bash = tool({
    name: "bash",
    description: "Runs a command",
    input: z.object({ command: z.string() }),
    execute: ({ command }) => `ran ${command}`,
  });
  const model = scripted({ calls: [["bash", { command: "ls" }], ["bash", { command: "rm" }]] }, "Done.");
  const { messages } = await agent({ model, tools: [bash], use: [use] }).run("Go").result;
  const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
  const texts = results.map(({ parts: [part] }) => part?.type === "text" ? part.text : "");
  console.log(texts.map((text, index) => `${results[index]?.status} ${text}`).join("; "));
}
