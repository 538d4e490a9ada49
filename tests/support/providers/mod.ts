/**
 * The APIs of all providers.
 *
 * @module
 */
import { messagesApi } from "./anthropic.ts";
import type { ProviderApi } from "./api.ts";
import { geminiApi } from "./gemini.ts";
import { chatCompletions } from "./openai.ts";
import { responsesApi } from "./openai_responses.ts";

/** Every API that has an adapter. */
export const apis: readonly ProviderApi[] = [chatCompletions, messagesApi, responsesApi, geminiApi];
