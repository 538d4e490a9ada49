/**
 * All dialects.
 *
 * @module
 */
import { chatCompletions } from "./chat_completions.ts";
import type { Dialect } from "./dialect.ts";
import { generateContent } from "./generate_content.ts";
import { messages } from "./messages.ts";
import { responses } from "./responses.ts";

/** The dialects, one for each adapter over HTTP. */
export const dialects: readonly Dialect[] = [chatCompletions, responses, messages, generateContent];
