/** An agent that is served with every optional feature of the engine: store, log, idempotency, subagents, compaction and trace. */
import { agent, serve } from "@jizai/jizai";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { memoryLog } from "@jizai/jizai/session/log";
import { options } from "./assistant.ts";
import { store } from "./features/store.ts";

const helper = agent({ ...options, name: "helper" });
const assistant = agent({ ...options, tools: [...options.tools, helper.asTool()], use: [compaction()], trace: true });

export default serve(assistant, { store, log: memoryLog() });
