/** The adapter and what all adapters share. */
export * from "./base.ts";
export { anthropic } from "@jizai/jizai/model/anthropic";
