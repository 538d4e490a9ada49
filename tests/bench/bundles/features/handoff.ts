/** A served agent that transfers conversations. */
import { agent, serve } from "@jizai/jizai";
import { handoff } from "@jizai/jizai/middleware/handoff";
import { options } from "../assistant.ts";

export default serve(agent({ ...options, use: [handoff([])] }));
