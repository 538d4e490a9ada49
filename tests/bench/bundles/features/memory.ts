/** A served agent with the memory tool of Claude. */
import { agent, serve } from "@jizai/jizai";
import { memory } from "@jizai/jizai/middleware/notes/memory";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";
import { options } from "../assistant.ts";

export default serve(agent({ ...options, use: [memory({ keyValue: memoryKeyValue() })] }));
