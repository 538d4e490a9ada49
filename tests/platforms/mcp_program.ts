/**
 * An MCP server that speaks over its standard input and output.
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
await server.connect(new StdioServerTransport());
