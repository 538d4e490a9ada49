import { agent, textOf } from "@jizai/jizai";
import { mcp } from "@jizai/jizai/middleware/mcp";
import { stdio } from "@jizai/jizai/middleware/mcp/stdio";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import processes from "node:child_process";
import { folder } from "./folder.ts";

Deno.test("mcp() continues without a process that does not exist", async () => {
  const transport = stdio("./missing");
  const use = [mcp({ servers: { missing: { transport } } })];
  const reported: unknown[] = [];
  const run = agent({ model: scripted("Hello!"), use }).run({ prompt: "Hi", onError: (error) => reported.push(error) });
  assertEquals((await run.result).status, "done");
  assertEquals(reported.map(String), [`Error: Cannot use MCP server "missing": it could not be connected`]);
});

Deno.test("mcp() says which runtimes have processes if this one has none", async () => {
  using _none = stub(processes, "spawn", () => {
    throw Object.assign(new Error("not implemented"), { code: "ERR_METHOD_NOT_IMPLEMENTED" }); // the error of workerd
  });
  const reported: unknown[] = [];
  const use = [mcp({ servers: { files: { transport: stdio("server") } } })];
  await agent({ model: scripted("Hello!"), use }).run({ prompt: "Hi", onError: (error) => reported.push(error) })
    .result;
  assertEquals(reported.map((error) => error instanceof Error && String(error.cause)), [
    'Error: Cannot start "files": this runtime has no processes; expected Deno, Node or Bun',
  ]);
});

// the official transport leaves a timer running
const untimed = { sanitizeOps: false, sanitizeResources: false };

/** Bundles the test server into a folder, and returns a transport that runs it. */
async function server(folder: string) {
  const program = `${folder}/server.js`;
  const args = ["bundle", "--quiet", "--output", program, "tests/platforms/mcp_program.ts"];
  assertEquals((await new Deno.Command(Deno.execPath(), { args }).output()).success, true);
  return stdio(Deno.execPath(), ["run", "--allow-env", program], { env: { GREETING: "Hello" } });
}

Deno.test("mcp() runs a server as a process during the run", untimed, async () => {
  await using disk = await folder();
  const transport = await server(disk.path);
  const model = scripted({ calls: [["mcp__hosts__greet", { name: "Ada" }]] }, "Done.");
  const { messages } = await agent({ model, use: [mcp({ servers: { hosts: { transport } } })] }).run("Greet").result;
  assertEquals(messages[2], {
    role: "tool",
    results: [{
      callId: "call_1",
      name: "mcp__hosts__greet",
      status: "ok",
      parts: [{ type: "text", text: "Hello, Ada!" }],
    }],
  });
});

Deno.test("mcp() emits all progress of a process, also the last event before the result", untimed, async () => {
  await using disk = await folder();
  const transport = await server(disk.path);
  const model = scripted({ calls: [["mcp__hosts__count", {}]] }, "Done.");
  const run = agent({ model, use: [mcp({ servers: { hosts: { transport } } })] }).run("Count");
  const progress: unknown[] = [];
  for await (const event of run.events) if (event.type === "tool.progress") progress.push(event.data);
  assertEquals(progress, [1, 2, 3].map((progress) => ({ progress, total: 3 })));
});

Deno.test("mcp() stops a process that answers without an end", untimed, async () => {
  await using disk = await folder();
  const transport = await server(disk.path);
  const greet = ["mcp__hosts__greet", { name: "Ada" }] as const;
  const model = scripted({ calls: [greet] }, { calls: [["mcp__hosts__flood", {}]] }, { calls: [greet] }, "Done.");
  const use = [mcp({ servers: { hosts: { transport, maxBytes: 100_000 } } })];
  const reported: unknown[] = [];
  const run = agent({ model, use }).run({ prompt: "Flood", onError: (error) => reported.push(error) });
  const { status, messages } = await run.result;
  const results = messages.flatMap((message) => message.role === "tool" ? message.results.map(textOf) : []);
  const reason = "A message of the MCP server has more than 100000 bytes.";
  assertEquals([status, results], ["done", ["Hello, Ada!", reason, reason]]);
  assertEquals(reported.map(String), [`ToolError: ${reason}`, `ToolError: ${reason}`]);
});
