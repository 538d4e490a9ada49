/** What is served, spoken to in a client's dialect too. */
import { serve } from "@jizai/jizai";
import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { helper } from "../served.ts";

export default serve(helper, { wires: [aiSdkUi()] });
