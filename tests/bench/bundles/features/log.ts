/** A served agent whose events are logged, so that clients can read them again and repeat a request by its key. */
import { agent, serve } from "@jizai/jizai";
import { memoryLog } from "@jizai/jizai/session/log";
import { options } from "../assistant.ts";

export default serve(agent(options), { log: memoryLog() });
