/** An agent with one tool, run in this process. */
import { agent } from "@jizai/jizai";
import { options } from "./assistant.ts";

const assistant = agent(options);

export const answer = (prompt: string) => assistant.run(prompt).result;
