/** What is served, spoken to in a client's dialect too. */
import { serve } from "@jizai/jizai";
import { chatCompletions } from "@jizai/jizai/wire/openai";
import { helper } from "../served.ts";

export default serve(helper, { wires: [chatCompletions()] });
