/** A served agent with the wire for the AI SDK's UI. */
import { agent, serve } from "@jizai/jizai";
import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { options } from "../assistant.ts";

export default serve(agent(options), { wires: [aiSdkUi()] });
