/** A served agent that prints its hooks. */
import { agent, serve } from "@jizai/jizai";
import { options } from "../assistant.ts";
import { explain } from "@jizai/jizai/explain";

const assistant = agent(options);

export const explanation = () => explain(assistant);
export default serve(assistant);
