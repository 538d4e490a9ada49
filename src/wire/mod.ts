/**
 * The wire port and the shapes that parse requests, for authors of client dialects.
 *
 * @module
 */
export * from "../protocol/shape.ts";
export { type RepairedTranscript, repairTranscript } from "../core/lib/repair.ts";
export type * from "./wire.ts";
