/** A served agent that searches its tools. */
import { agent, serve } from "@jizai/jizai";
import { toolSearch } from "@jizai/jizai/middleware/tool_search";
import { options } from "../assistant.ts";

export default serve(agent({ ...options, use: [toolSearch()] }));
