/**
 * The client: opens runs of a served agent, hears them to their end over any number of connections, and tells what they have come to. Two kilobytes
 * that need `fetch` and nothing else.
 *
 * What it does about a cut asks something of the server: that `GET /runs/:id` gives the rest after `Last-Event-ID`, and that a request with an
 * `Idempotency-Key` it has seen is the same run. `serve()` does both where it has a `log`, and leaves a run alone whose client is cut off where
 * `onClientGone` is not "stop". Without a log, a run whose stream is cut ends as a `ClientError`.
 *
 * @module
 */
export { type Client, client, type RunRequest } from "./client.ts";
export { ClientError, type ClientOptions } from "./connection.ts";
export { fold } from "./fold.ts";
export type { ClientRun } from "./run.ts";
export * from "./state.ts";
