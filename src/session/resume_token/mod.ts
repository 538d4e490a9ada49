/**
 * Resume tokens: paused sessions in the hands of their clients, where there is no store.
 *
 * @module
 */
export * from "./resume_token.ts";
export * from "./resume_token_error.ts";
export type { HeldSession } from "./held_session.ts";
export type { SigningKey } from "./signature.ts";
