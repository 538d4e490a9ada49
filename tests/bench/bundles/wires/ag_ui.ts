/** A served agent that also speaks to clients of AG-UI. */
import { agent, serve } from "@jizai/jizai";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { options } from "../assistant.ts";

export default serve(agent(options), { wires: [agUi()] });
