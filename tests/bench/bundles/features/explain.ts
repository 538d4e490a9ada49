/** A served agent that prints its hooks. */
import { agent, serve } from "@jizai/jizai";
import { options } from "../assistant.ts";

const assistant = agent(options);

export const explanation = () => assistant.explain();
export default serve(assistant);
