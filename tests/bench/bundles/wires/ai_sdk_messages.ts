/** A served agent with the wire for the AI SDK's UI, and the route that returns its messages. */
import { agent, serve } from "@jizai/jizai";
import { aiSdkMessages } from "@jizai/jizai/wire/ai_sdk";
import { options } from "../assistant.ts";

export default serve(agent(options), { wires: [aiSdkMessages()] });
