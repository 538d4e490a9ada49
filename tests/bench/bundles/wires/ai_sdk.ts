/** A served agent that also speaks to clients of the AI SDK's UI. */
import { agent, serve } from "@jizai/jizai";
import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { options } from "../assistant.ts";

export default serve(agent(options), { wires: [aiSdkUi()] });
