/** A served agent that caches responses. */
import { agent, serve } from "@jizai/jizai";
import { cache } from "@jizai/jizai/middleware/cache";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";
import { options } from "../assistant.ts";

export default serve(agent({ ...options, use: [cache({ keyValue: memoryKeyValue() })] }));
