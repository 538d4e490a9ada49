/** The adapter, with the code that all adapters share. */
export * from "./base.ts";
export { openaiResponses } from "@jizai/jizai/model/openai_responses";
