/**
 * Resume tokens: paused sessions that their clients keep, for servers without a store.
 *
 * @module
 */
export * from "./resume_token.ts";
export * from "./resume_token_error.ts";
export type { HeldSession } from "./held_session.ts";
export type { SecretKey } from "./keys.ts";
