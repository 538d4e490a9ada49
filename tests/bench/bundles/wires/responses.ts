/** A served agent that also speaks to clients of OpenAI's Responses API. */
import { agent, serve } from "@jizai/jizai";
import { responses } from "@jizai/jizai/wire/openai";
import { options } from "../assistant.ts";

export default serve(agent(options), { wires: [responses()] });
