/**
 * A program that does not dispose its hooks.
 *
 * @module
 */
import { agent } from "@jizai/jizai";
import { rpc_hooks } from "@jizai/jizai/middleware/rpc_hooks";
import { stdio } from "@jizai/jizai/middleware/rpc_hooks/stdio";
import { scripted } from "@jizai/jizai/model/scripted";

const hook = new URL("rpc_hook.ts", import.meta.url).pathname;
const command = [Deno.execPath(), "run", "--allow-all", hook, "gate"];
const processes = { gate: { enabled: true, command, intercept: ["before_tool"] } };
const { text } = await agent({ model: scripted("Done."), use: [rpc_hooks({ processes }, { stdio })] }).run("Hi").result;
console.log(text);
