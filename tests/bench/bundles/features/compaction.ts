/** A served agent that compacts its transcript. */
import { agent, serve } from "@jizai/jizai";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { options } from "../assistant.ts";

export default serve(agent({ ...options, use: [compaction()] }));
