/**
 * A program that runs hooks as processes, and is such a hook itself. It runs on every runtime.
 *
 * @module
 */
import { agent, type Middleware, tool } from "../../mod.ts";
import { command_hooks } from "../../middleware/foreign_hooks/command_hooks/mod.ts";
import { runCommand, serveRpc } from "../../middleware/foreign_hooks/export_hooks/stdio/mod.ts";
import { rpc_hooks } from "../../middleware/foreign_hooks/rpc_hooks/mod.ts";
import { stdio } from "../../middleware/foreign_hooks/rpc_hooks/stdio/mod.ts";
import { permissions } from "../../middleware/guards/permissions.ts";
import { scripted } from "../../src/model/scripted.ts";
import process from "node:process";
import * as z from "zod";

const [, self = "", does] = process.argv;
const why = `Dangerous, ${process.env.MOOD}`;
const guard = permissions({ deny: [{ tool: "bash", when: (input) => JSON.stringify(input).includes("rm"), why }] });
const program = [process.execPath, ..."deno" in process.versions ? ["run", "--allow-all"] : [], self];

if (does === "rpc") await serveRpc(guard);
else if (does === "command") await runCommand(guard);
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
