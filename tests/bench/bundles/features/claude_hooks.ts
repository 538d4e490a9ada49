/** A served agent with the hooks of Claude. */
import { agent, serve } from "@jizai/jizai";
import { claude_hooks } from "@jizai/jizai/middleware/claude_hooks";
import { options } from "../assistant.ts";

export default serve(agent({ ...options, use: [claude_hooks({})] }));
