/**
 * Sessions: what outlives a run. Plain JSON data.
 *
 * @module
 */
import type { Question } from "./event.ts";
import type { AssistantMessage, CallResult, Message, Usage, UserMessage } from "./message.ts";

/** A conversation, and the run that has it now. */
export interface Session {
  /** The session's id. */
  readonly id: string;
  /** Counts its saves. 0: not saved yet. */
  readonly version: number;
  /** The transcript: always valid. What a paused run has not finished is in its record. */
  readonly messages: readonly Message[];
  /** The run that has it, running or paused. */
  readonly run?: RunRecord;
}

/** What is kept of a run that has not ended. */
export interface RunRecord {
  /** The run's id. */
  readonly id: string;
  /** Whether it runs, or waits for a person. */
  readonly status: "running" | "paused";
  /** In milliseconds since 1970. */
  readonly startedAt: number;
  /** Until when it may have the session, in milliseconds since 1970: a process that died gives it back then. Default: for ever. */
  readonly until?: number;
  /** The number of its last event. */
  readonly events: number;
  /** Tokens so far. */
  readonly usage: Usage;
  /** What it has used so far. */
  readonly used: Tally;
  /** How many messages there were before it. */
  readonly before: number;
  /** What middleware keep for the run, by name. */
  readonly state: readonly (readonly [string, unknown])[];
  /** Where it goes on. */
  readonly pending?: Pending;
}

/** What a run has used. */
export interface Tally {
  /** Model responses. */
  readonly turns: number;
  /** Tool calls. */
  readonly calls: number;
  /** How often `stop` went on since the last batch. */
  readonly continuations: number;
  /** Batches of calls. */
  readonly batches: number;
  /** How often the model was asked again for its output. */
  readonly outputs: number;
}

/** Where a paused run goes on, and what it waits for. */
export interface Pending {
  /** What a person is asked. */
  readonly questions: readonly Question[];
  /** A prompt that was not accepted yet. */
  readonly prompt?: UserMessage;
  /** A message whose calls are not all answered, and the results so far. */
  readonly batch?: { readonly message: AssistantMessage; readonly results: readonly PendingResult[] };
  /** The agent was about to finish. */
  readonly stopping?: boolean;
}

/** A result that waits for its batch, and what it adds for the model. */
export interface PendingResult extends CallResult {
  /** What it adds for the model. */
  readonly context?: readonly string[];
}

/** A person's answer to a question. */
export type PersonAnswer =
  | { readonly callId: string; readonly type: "approve"; readonly input?: unknown }
  | { readonly callId: string; readonly type: "deny"; readonly reason?: string };
