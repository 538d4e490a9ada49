/**
 * OpenAI's wires, for its own clients and compatible ones.
 *
 * @module
 */
export * from "./chat/chat_completions.ts";
export type { OpenaiOptions } from "./models.ts";
export * from "./responses/responses.ts";
