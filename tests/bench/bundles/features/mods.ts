/** A served agent with a mod. */
import { agent, serve } from "@jizai/jizai";
import { mods } from "@jizai/jizai/middleware/mods";
import { options } from "../assistant.ts";

export default serve(agent({ ...options, use: [mods({ name: "none", module: () => ({ register() {} }) })] }));
