/** What is served, and shown to a client in its dialect. */
import { serve } from "@jizai/jizai";
import { aiSdkMessages } from "@jizai/jizai/wire/ai_sdk";
import { helper } from "../served.ts";

export default serve(helper, { wires: [aiSdkMessages()] });
