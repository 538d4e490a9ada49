/** A served agent with the tools of an MCP server. */
import { agent, serve } from "@jizai/jizai";
import { mcp } from "@jizai/jizai/middleware/mcp";
import { options } from "../assistant.ts";

export default serve(agent({ ...options, use: [mcp({ servers: { docs: { url: "https://docs.example/mcp" } } })] }));
