/** A served agent with the AG-UI wire. */
import { agent, serve } from "@jizai/jizai";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { options } from "../assistant.ts";

export default serve(agent(options), { wires: [agUi()] });
