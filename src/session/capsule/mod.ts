/**
 * Capsules: paused sessions in the hands of their clients, where there is no store.
 *
 * @module
 */
export * from "./capsule.ts";
export * from "./capsule_error.ts";
export type { Held } from "./held.ts";
export type { SigningKey } from "./signature.ts";
