/** An agent that is served with every optional feature of the engine: store, subagents, compaction and trace. */
import { agent, serve } from "@jizai/jizai";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { options } from "./assistant.ts";
import { store } from "./features/store.ts";
import { asTool } from "@jizai/jizai/subagents";
import { trace } from "@jizai/jizai/trace";

const helper = agent({ ...options, name: "helper" });
const assistant = agent({ ...options, tools: [...options.tools, asTool(helper)], use: [compaction()], trace });

export default serve(assistant, { store });
