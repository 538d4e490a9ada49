/** A served agent whose answers are screened. */
import { agent, serve } from "@jizai/jizai";
import { screen } from "@jizai/jizai/screen";
import { options } from "../assistant.ts";

const guard = { name: "guard", model: screen({ window: 100, check: () => ({ type: "pass" }) }) };
export default serve(agent({ ...options, use: [guard] }));
