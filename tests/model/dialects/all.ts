/**
 * All dialects.
 *
 * @module
 */
import { chatCompletions } from "./chat_completions.ts";
import type { Dialect } from "./dialect.ts";
import { responses } from "./responses.ts";

/** The dialects, one for each adapter over HTTP. */
export const dialects: readonly Dialect[] = [chatCompletions, responses];
