/**
 * The client: opens runs of a served agent, hears them to their end over any number of connections, and tells what they have come to. Two kilobytes
 * that need `fetch` and nothing else.
 *
 * @module
 */
export { type Client, client, type RunRequest } from "./client.ts";
export { ClientError, type ClientOptions } from "./connection.ts";
export { fold } from "./fold.ts";
export type { ClientRun } from "./run.ts";
export * from "./state.ts";
