/** A served agent with the wire of MCP. */
import { agent, serve } from "@jizai/jizai";
import { mcpWire } from "@jizai/jizai/wire/mcp";
import { options } from "../assistant.ts";

export default serve(agent(options), { wires: [mcpWire()] });
