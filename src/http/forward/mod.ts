/**
 * Forwarding: an app in front knows who is asking, and hands the request to the object that has the conversation, which believes nobody else.
 *
 * @module
 */
export type { SigningKey } from "../../session/resume_token/signature.ts";
export * from "./forward.ts";
