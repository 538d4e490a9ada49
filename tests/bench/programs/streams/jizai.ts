/** The same stream by a served agent. */
import { agent, serve } from "@jizai/jizai";
import { count, macrotask } from "../../kit/floor.ts";
import { streaming } from "../../kit/load.ts";

export default serve(agent({ model: streaming(count, { between: macrotask }) }));
