/**
 * A Worker whose agent has the tools of an MCP server.
 *
 * @module
 */
import { agent, type Message } from "@jizai/jizai";
import { mcp } from "@jizai/jizai/middleware/mcp";
import { scripted } from "@jizai/jizai/model/scripted";

/** Every Worker of these tests has a Durable Object. */
export class Nothing {}

export default {
  /** Makes the agent add two numbers on the server that the body names. Returns the results. */
  async fetch(request: Request): Promise<Response> {
    const url = await request.text();
    const model = scripted({ calls: [["mcp__sums__add", { a: 1, b: 2 }]] }, "Done.");
    const { messages } = await agent({ model, use: [mcp({ servers: { sums: { url } } })] }).run("Add").result;
    return Response.json(messages.flatMap((message: Message) => message.role === "tool" ? message.results : []));
  },
};
