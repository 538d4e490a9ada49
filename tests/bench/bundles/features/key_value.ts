/** A served agent beside a key-value database in memory. */
import { agent, serve } from "@jizai/jizai";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";
import { options } from "../assistant.ts";

export const keyValue = memoryKeyValue();
export default serve(agent(options));
