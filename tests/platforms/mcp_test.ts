import { assertEquals } from "@std/assert";
import * as z from "zod";
import { served as servedHere } from "../support/mcp_server.ts";
import { folder } from "./folder.ts";
import { bundled, served } from "./workerd.ts";

Deno.test("in workerd, mcpWire() serves an agent, and mcp() asks a person what a server asks", async () => {
  await using disk = await folder();
  const script = await bundled("tests/platforms/mcp_questions_worker.ts");
  await using worker = await served(script, { className: "Nothing" }, disk.path);
  const response = await worker.request("/", { method: "POST", body: `${worker.url}mcp` });
  assertEquals(await response.json(), {
    asked: [['The MCP server "shop" asks: Run pay?\npay {"amount":7}']],
    results: [[{ type: "text", text: "Paid 7." }]],
  });
});

for (const sessions of [false, true]) {
  const which = sessions ? "with sessions" : "without sessions";

  Deno.test(`in workerd, mcp() brings the tools of a server ${which}, and leaves it`, async () => {
    await using server = servedHere((server) => {
      const schemas = {
        inputSchema: z.object({ a: z.number(), b: z.number() }),
        outputSchema: z.object({ sum: z.number() }),
      };
      server.registerTool("add", { description: "Adds", ...schemas }, ({ a, b }) => {
        return { content: [], structuredContent: { sum: a + b } };
      });
    }, { sessions });
    await using disk = await folder();
    await using worker = await served(
      await bundled("tests/platforms/mcp_worker.ts"),
      { className: "Nothing" },
      disk.path,
    );
    const response = await worker.request("/", { method: "POST", body: server.url });
    assertEquals(await response.json(), [{
      callId: "call_1",
      name: "mcp__sums__add",
      status: "ok",
      parts: [{ type: "text", text: `{"sum":3}` }],
    }]);
    assertEquals(server.open, 0);
  });
}
