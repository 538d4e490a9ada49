/** An agent with a structured output that is not streamed. */
import { agent, serve } from "@jizai/jizai";
import * as z from "zod";
import { options } from "../assistant.ts";

export default serve(agent({ ...options, output: z.object({ city: z.string() }) }));
