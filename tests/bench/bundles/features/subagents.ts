/** A served agent that has another one as a tool. */
import { agent, serve } from "@jizai/jizai";
import { options } from "../assistant.ts";
import { asTool } from "@jizai/jizai/subagents";

const helper = agent({ ...options, name: "helper" });

export default serve(agent({ ...options, tools: [...options.tools, asTool(helper)] }));
