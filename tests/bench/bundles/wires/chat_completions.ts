/** A served agent with the wire for OpenAI's chat completions. */
import { agent, serve } from "@jizai/jizai";
import { chatCompletions } from "@jizai/jizai/wire/openai";
import { options } from "../assistant.ts";

export default serve(agent(options), { wires: [chatCompletions()] });
