/**
 * Forwarding: an app in front authenticates requests and forwards them to the object that has the conversation, which accepts no other requests.
 *
 * @module
 */
export type { SigningKey } from "../../session/resume_token/signature.ts";
export * from "./forward.ts";
