/**
 * OpenAI's wires, for its own clients and compatible ones.
 *
 * @module
 */
export { chatCompletions } from "./chat_completions.ts";
export type { OpenaiOptions } from "./models.ts";
export { responses } from "./responses.ts";
export type { Wire } from "../wire.ts";
