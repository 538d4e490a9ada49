/** The adapter, with the code that all adapters share. */
export * from "./base.ts";
export { anthropic } from "@jizai/jizai/model/anthropic";
