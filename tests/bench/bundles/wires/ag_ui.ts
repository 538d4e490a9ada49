/** What is served, spoken to in a client's dialect too. */
import { serve } from "@jizai/jizai";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { helper } from "../served.ts";

export default serve(helper, { wires: [agUi()] });
