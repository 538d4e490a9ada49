/**
 * Runs an MCP server over standard input and output.
 *
 * @module
 */
import { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";

const server = new McpServer({ name: "test", version: "1" });
server.registerTool("greet", { description: "Greets", inputSchema: z.object({ name: z.string() }) }, ({ name }) => {
  return { content: [{ type: "text", text: `${Deno.env.get("GREETING")}, ${name}!` }] };
});
server.registerTool("count", { description: "Counts" }, async ({ mcpReq }) => {
  const { progressToken = 0 } = mcpReq._meta ?? {};
  for (let progress = 1; progress <= 3; progress++) {
    await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 3 } });
  }
  return { content: [{ type: "text", text: "3" }] };
});
server.registerTool("flood", { description: "Answers without an end" }, async () => {
  const bytes = new TextEncoder().encode("x".repeat(10_000));
  for (;;) await Deno.stdout.write(bytes);
});
await server.connect(new StdioServerTransport());
