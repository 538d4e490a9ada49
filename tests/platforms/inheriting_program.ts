/**
 * A program whose hooks, a command and a process, report a variable of the environment that they inherit.
 *
 * @module
 */
import { agent, tool } from "@jizai/jizai";
import { command_hooks } from "@jizai/jizai/middleware/command_hooks";
import { rpc_hooks } from "@jizai/jizai/middleware/rpc_hooks";
import { stdio } from "@jizai/jizai/middleware/rpc_hooks/stdio";
import { scripted } from "@jizai/jizai/model/scripted";
import process from "node:process";
import * as z from "zod";
import { lines } from "../support/transcript_lines.ts";

const bash = tool({ name: "bash", description: "Runs", input: z.object({}), execute: () => "ran" });
const settings = {
  hooks: { UserPromptSubmit: [{ hooks: [{ type: "command" as const, command: 'echo "command $GREETING"' }] }] },
};
const [hook = ""] = process.argv.slice(2);
const command = [process.execPath, "run", "--allow-all", hook, "place"];
const processes = { gate: { enabled: true, command, env: { HOOK_NAME: "kagi" }, intercept: ["before_tool"] } };
await using gate = rpc_hooks({ defaults: { interceptor_timeout_ms: 60_000 }, processes }, { stdio });
const use = [command_hooks(settings), gate];
const model = scripted({ calls: [["bash", {}]] }, "Done.");
const { messages } = await agent({ model, tools: [bash], use }).run("Hi").result;
console.log(lines(messages).join("\n"));
