/** A served agent with the wire for OpenAI's Responses API. */
import { agent, serve } from "@jizai/jizai";
import { responses } from "@jizai/jizai/wire/openai";
import { options } from "../assistant.ts";

export default serve(agent(options), { wires: [responses()] });
