/**
 * The APIs of all providers.
 *
 * @module
 */
import { messagesApi } from "./anthropic.ts";
import type { ProviderApi } from "./api.ts";
import { chatCompletions } from "./openai.ts";

/** Every API that has an adapter. */
export const apis: readonly ProviderApi[] = [chatCompletions, messagesApi];
