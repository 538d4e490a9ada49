/** A served agent that keeps notes. */
import { agent, serve } from "@jizai/jizai";
import { notes } from "@jizai/jizai/middleware/notes";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";
import { options } from "../assistant.ts";

export default serve(agent({ ...options, use: [notes({ keyValue: memoryKeyValue() })] }));
