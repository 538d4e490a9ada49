/** A served agent that also speaks to clients of the AI SDK's UI, which reads a session's messages. */
import { agent, serve } from "@jizai/jizai";
import { aiSdkMessages } from "@jizai/jizai/wire/ai_sdk";
import { options } from "../assistant.ts";

export default serve(agent(options), { wires: [aiSdkMessages()] });
