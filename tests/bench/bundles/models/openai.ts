/** The adapter, with the code that all adapters share. */
export * from "./base.ts";
export { openai } from "@jizai/jizai/model/openai";
