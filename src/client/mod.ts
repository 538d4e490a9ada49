/**
 * A client that begins runs of a served agent, reads them to their end over several connections, and reduces their events to a state. It takes 3
 * kilobytes and needs only `fetch`.
 *
 * To continue after a lost connection, the server needs an `onClientGone` other than "stop": then `GET /runs/:id` returns the events after
 * `Last-Event-ID`, and a request that is sent again with its `Idempotency-Key` joins the run that it began. From a server that keeps no events, a lost connection is a
 * `ClientError`.
 *
 * @module
 */
export { type Client, client, type ClientRun, type RunRequest } from "./client.ts";
export { ClientError, type ClientOptions } from "./connection.ts";
export { type ChatMessage, type ChatRequest, newestMessageOnly } from "./newest_message.ts";
export {
  type AddedView,
  type AnswerView,
  type CallStatus,
  type CallView,
  fold,
  type Frame,
  noRun,
  type PartView,
  type PromptView,
  type RunState,
  type RunStatus,
  type TextView,
} from "./state.ts";
export type { Decider, Decision, FailureCode } from "../protocol/event.ts";
export type { AddedPart } from "../protocol/part.ts";
