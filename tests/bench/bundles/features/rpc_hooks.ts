/** A served agent with the hooks of PicoClaw. */
import { agent, serve } from "@jizai/jizai";
import { rpc_hooks } from "@jizai/jizai/middleware/rpc_hooks";
import { options } from "../assistant.ts";

export default serve(agent({ ...options, use: [rpc_hooks({})] }));
