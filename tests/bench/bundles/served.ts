/** An agent with one tool, served, with its sessions in memory. */
import { agent, serve } from "@jizai/jizai";
import { options } from "./assistant.ts";

export default serve(agent(options));
