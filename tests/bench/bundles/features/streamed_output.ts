/** An agent that streams its structured output. */
import { agent, serve } from "@jizai/jizai";
import { streamed } from "@jizai/jizai/output";
import * as z from "zod";
import { options } from "../assistant.ts";

export default serve(agent({ ...options, output: streamed(z.object({ city: z.string() })) }));
