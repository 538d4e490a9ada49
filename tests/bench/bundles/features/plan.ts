/** A served agent that keeps a plan. */
import { agent, serve } from "@jizai/jizai";
import { plan } from "@jizai/jizai/middleware/plan";
import { options } from "../assistant.ts";

export default serve(agent({ ...options, use: [plan()] }));
