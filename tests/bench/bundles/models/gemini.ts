/** The adapter, with the code that all adapters share. */
export * from "./base.ts";
export { gemini } from "@jizai/jizai/model/gemini";
