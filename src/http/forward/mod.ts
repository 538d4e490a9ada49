/**
 * Forwarding: an app in front authenticates requests and forwards them to the object that has the conversation, which accepts no other requests.
 *
 * @module
 */
export type { SecretKey } from "../../session/resume_token/encryption.ts";
export * from "./forward.ts";
