import { assert, assertEquals } from "@std/assert";
import { agent, tool } from "@jizai/jizai";
import { rpc_hooks, type RpcHooks } from "@jizai/jizai/middleware/rpc_hooks";
import { stdio } from "@jizai/jizai/middleware/rpc_hooks/stdio";
import { scripted, type ScriptedCall } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import { warnings } from "../support/rpc.ts";
import { lines } from "../support/transcript_lines.ts";
import { folder } from "./folder.ts";

const here = (name: string) => new URL(name, import.meta.url).pathname;

/** The middleware with one program of this behavior. */
function gate(does: string, more: object = {}): RpcHooks {
  const command = [Deno.execPath(), "run", "--allow-all", here("rpc_hook.ts"), does];
  const process = { enabled: true, command, intercept: ["before_tool", "approve_tool"], ...more };
  return rpc_hooks({ defaults: { interceptor_timeout_ms: 60_000 }, processes: { gate: process } }, { stdio });
}

/** Returns the results of commands that an agent runs. */
async function run(hooks: RpcHooks, ...commands: readonly string[]) {
  const bash = tool({
    name: "bash",
    description: "Runs a command",
    input: z.object({ command: z.string() }),
    execute: ({ command }) => `ran ${command}`,
  });
  const calls = commands.map((command): readonly [string, unknown] => ["bash", { command }]);
  const run = agent({ model: scripted({ calls }, "Done."), tools: [bash], use: [hooks] }).run("Go");
  const events = await Array.fromAsync(run.events);
  const result = await run.result;
  return { result, results: lines(result.messages).slice(2, -1), warned: warnings(events) };
}

Deno.test("PicoClaw: a process decides about calls; after a crash interceptors are open and approvers closed", async () => {
  await using fine = gate("gate", { intercept: ["before_tool"] });
  assertEquals((await run(fine, "ls", "rm -rf /")).results, [
    "ok ran ls",
    "denied Tool execution denied by hook: Dangerous",
  ]);
  await using open = gate("crash", { intercept: ["before_tool"] });
  assertEquals((await run(open, "ls")).results, ["ok ran ls"]);
  assertEquals((await run(open, "ls")).results, ["ok ran ls"]);
  await using closed = gate("crash", { intercept: ["approve_tool"] });
  const denied = 'denied Tool execution denied by approval hook: tool approval hook "gate" failed';
  assertEquals((await run(closed, "ls")).results, [denied]);
  assertEquals((await run(closed, "ls")).results, [denied]);
});

Deno.test("PicoClaw: noise between the answers of a process is ignored", async () => {
  await using hooks = gate("noise", { intercept: ["before_tool"] });
  const { results, warned } = await run(hooks, "ls", "rm -rf /");
  assertEquals([results, warned], [["ok ran ls", "denied Tool execution denied by hook: Dangerous"], []]);
});

Deno.test("PicoClaw: a process has the configured directory and environment", async () => {
  await using disk = await folder();
  await using hooks = gate("place", { dir: disk.path, env: { HOOK_NAME: "kagi" }, intercept: ["before_tool"] });
  assertEquals((await run(hooks, "ls")).results, [`ok ${await Deno.realPath(disk.path)} kagi true`]);
});

Deno.test("PicoClaw: a process that does not end with its input is killed after two seconds", async () => {
  const hooks = gate("pid", { intercept: ["before_tool"] });
  const [line = ""] = (await run(hooks, "ls")).results;
  const pid = line.replace("ok ", "");
  const lives = async () => (await new Deno.Command("kill", { args: ["-0", pid], stderr: "null" }).output()).success;
  assert(await lives());
  const start = performance.now();
  await hooks[Symbol.asyncDispose]();
  const took = performance.now() - start;
  assertEquals([await lives(), took > 1_900 && took < 60_000], [false, true]);
});

Deno.test("PicoClaw: a process counts as ended even if its children live", async () => {
  await using hooks = gate("orphan", { intercept: ["before_tool"], env: { PATH: "/usr/bin:/bin" } });
  const { results, warned } = await run(hooks, "ls");
  assertEquals([results, warned], [["ok ran ls"], [
    'The hook "gate" failed at before_tool and is skipped.',
    'The hook "gate" failed at after_tool and is skipped.',
  ]]);
});

Deno.test("PicoClaw: a missing program fails every run", async () => {
  await using hooks = rpc_hooks({
    processes: { gate: { enabled: true, command: ["/no/such/program"], intercept: ["before_tool"] } },
  }, { stdio });
  for (let time = 0; time < 2; time++) {
    const { result } = await run(hooks, "ls");
    assertEquals([result.status, String(result.error)], ["failed", 'Error: Cannot start the hook "gate"']);
  }
});

Deno.test("PicoClaw: hooks do not keep the program running", async () => {
  const output = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--allow-all", here("rpc_program.ts")],
    stderr: "null",
  }).output();
  assertEquals([output.code, new TextDecoder().decode(output.stdout)], [0, "Done.\n"]);
});

Deno.test("commands and processes that are hooks inherit the environment", async () => {
  const args = ["run", "--allow-all", here("inheriting_program.ts"), here("rpc_hook.ts")];
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), { args, env: { GREETING: "Hello" } }).output();
  const printed = new TextDecoder().decode(stdout).split("\n");
  const seen = printed.filter((line) => line.includes("Hello"));
  assertEquals(seen, ["prompt command Hello", `ok ${Deno.cwd()} kagi trueHello`], new TextDecoder().decode(stderr));
});

const python = await new Deno.Command("python3", { args: ["--version"], stdout: "null", stderr: "null" }).output()
  .then(({ success }) => success, () => false);

Deno.test({
  name: "PicoClaw: the documented plugin adds a tool and answers its calls",
  ignore: !python,
  async fn() {
    const processes = {
      plugin: { enabled: true, command: ["python3", here("plugin_tool.py")], intercept: ["before_llm", "before_tool"] },
    };
    await using hooks = rpc_hooks({ hooks: { enabled: true, processes } }, { stdio });
    const call: ScriptedCall = { name: "my_plugin_tool", input: { input: "hello" } };
    const model = scripted({ calls: [call] }, "Done.");
    const { messages } = await agent({ model, use: [hooks] }).run("Use the plugin").result;
    assertEquals(model.requests[0]?.tools.map(({ name, description }) => [name, description]), [
      ["my_plugin_tool", "Plugin provided tool"],
    ]);
    assertEquals(lines(messages).slice(2), [
      "ok Plugin tool executed successfully, input: hello",
      "assistant Done.",
    ]);
  },
});
