/**
 * OpenAI's wires: what its clients speak, and those of whoever is compatible.
 *
 * @module
 */
export * from "./chat_completions.ts";
export type { OpenaiOptions } from "./models.ts";
export * from "./responses.ts";
