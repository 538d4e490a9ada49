/** A served agent that emits an event for each hook that acted. */
import { agent, serve } from "@jizai/jizai";
import { options } from "../assistant.ts";
import { trace } from "@jizai/jizai/trace";

export default serve(agent({ ...options, trace }));
