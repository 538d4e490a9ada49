/** The adapter and what all adapters share. */
export * from "./base.ts";
export { gemini } from "@jizai/jizai/model/gemini";
