/**
 * Approval links: each approves or denies one question of a paused run, for people who have no page of the application open.
 *
 * @module
 */
export type { SecretKey } from "../../session/resume_token/encryption.ts";
export * from "./approval_links.ts";
