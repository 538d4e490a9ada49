import { agent } from "@jizai/jizai";
import { mcp } from "@jizai/jizai/middleware/mcp";
import { stdio } from "@jizai/jizai/middleware/mcp/stdio";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { folder } from "./folder.ts";

Deno.test("mcp() does without a process that is not there", async () => {
  const transport = stdio("./nobody");
  const use = [mcp({ servers: { nobody: { transport } } })];
  const reported: unknown[] = [];
  const run = agent({ model: scripted("Hello!"), use }).run({ prompt: "Hi", onError: (error) => reported.push(error) });
  assertEquals((await run.result).status, "done");
  assertEquals(reported.map(String), [`Error: Cannot use MCP server "nobody"`]);
});

// the official transport leaves a timer behind that nobody waits for
const untimed = { sanitizeOps: false, sanitizeResources: false };

Deno.test("mcp() has a server run as a process, for as long as the run", untimed, async () => {
  await using disk = await folder();
  const program = `${disk.path}/server.js`;
  const args = ["bundle", "--quiet", "--output", program, "tests/platforms/mcp_program.ts"];
  assertEquals((await new Deno.Command(Deno.execPath(), { args }).output()).success, true);
  const transport = stdio(Deno.execPath(), ["run", "--allow-env", program], { env: { GREETING: "Hello" } });
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
