/** A served agent with the hooks of Copilot. */
import { agent, serve } from "@jizai/jizai";
import { copilot_hooks } from "@jizai/jizai/middleware/copilot_hooks";
import { options } from "../assistant.ts";

export default serve(agent({ ...options, use: [copilot_hooks({})] }));
