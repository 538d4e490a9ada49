/** The adapter and what all adapters share. */
export * from "./base.ts";
export { openai } from "@jizai/jizai/model/openai";
