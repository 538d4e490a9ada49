/**
 * Sessions: what outlives a run. Plain JSON data.
 *
 * @module
 */
import type { Event } from "./event.ts";
import type { AssistantMessage, CallResult, Message, ToolResult, Usage, UserMessage } from "./message.ts";
import type { PersonAnswer, Question } from "./question.ts";

/** A conversation, and the run that has it now. */
export interface Session {
  /** The session's id. */
  readonly id: string;
  /** Counts its saves. 0: not saved yet. */
  readonly version: number;
  /** The transcript: always valid. What a paused run has not finished is in its record. */
  readonly messages: readonly Message[];
  /** The session that keeps the transcript as it was before it was last compacted, and names the one before that. */
  readonly earlier?: string;
  /** The run that has it, running or paused. */
  readonly run?: RunRecord;
  /** Whose it is, where that is known. */
  readonly owner?: string;
  /** What middleware keep for it, by name. */
  readonly state?: readonly (readonly [string, unknown])[];
  /** What a person has allowed for good. */
  readonly rules?: readonly Rule[];
  /** The last event of the run that ended last, for whoever did not hear it, and how many messages there were before that run. */
  readonly last?: { readonly run: string; readonly event: Event; readonly before?: number };
}

/** Calls that nobody is asked about any more: those of a tool, or those of it with this very input. A denial still wins. */
export interface Rule {
  /** The tool. */
  readonly tool: string;
  /** The names of the agents that it is a tool of, beneath the one that runs. Default: it is a tool of the one that runs. */
  readonly path?: readonly string[];
  /** The input, as a person saw it. Default: any. */
  readonly input?: unknown;
}

/** What is kept of a run that has not ended. */
export interface RunRecord {
  /** The run's id. */
  readonly id: string;
  /** Whether it runs, or waits for a person. */
  readonly status: "running" | "paused";
  /** By which whoever serves it knows the request that it goes on with. */
  readonly request?: string;
  /** In milliseconds since 1970. */
  readonly startedAt: number;
  /** Until when it has the session, in milliseconds since 1970, if it does not say again that it lives: a process that died loses it then. Default: for ever. */
  readonly until?: number;
  /** Why it was being stopped, where it was: whoever finds it lost ends it. Default: it goes on. */
  readonly closing?: string;
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
  /** What waits to be said to it. */
  readonly inbox?: readonly UserMessage[];
  /** Whether it is to answer once more, and end. Default: false. */
  readonly finishing?: boolean;
  /** What others have put here for it since it was last saved, each with a save of its own. */
  readonly mail?: readonly Mail[];
}

/** What somebody puts in the record of a run that runs elsewhere: a message, and where it goes in, or that it is to finish. */
export type Mail =
  | { readonly type: "message"; readonly message: UserMessage; readonly after?: "batch" | "calls" }
  | { readonly type: "finish" };

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

/** Where a run goes on that is paused, or whose process died, and what it waits for. */
export interface Pending {
  /** What a person is asked. */
  readonly questions: readonly Question[];
  /** A prompt that was not accepted yet, after the messages that came with it. */
  readonly prompt?: readonly Message[];
  /** All that it does is to compact the transcript, and this is what to mind. */
  readonly compact?: { readonly instructions: string };
  /** A message whose calls are not all answered. */
  readonly batch?: OpenBatch;
  /** What a person has answered already, with what they were asked; it counts until their calls have results. */
  readonly answered?: readonly Answered[];
  /** Nobody was told that the prompt was accepted. */
  readonly untold?: boolean;
  /** The turn was done, but its hooks had not all come out. */
  readonly turned?: boolean;
  /** The agent was about to finish. */
  readonly stopping?: boolean;
}

/** A message whose calls are not all answered, and how far they are. */
export interface OpenBatch {
  /** The message that makes the calls. */
  readonly message: AssistantMessage;
  /** The results so far. */
  readonly results: readonly PendingResult[];
  /** Calls that were let run and whose results have not been reviewed. */
  readonly started?: readonly StartedCall[];
  /** The sessions of agents that wait for a person, by the call they work for. */
  readonly children?: Readonly<Record<string, Session>>;
}

/** A result that waits for its batch, and what it adds for the model. */
export interface PendingResult extends CallResult {
  /** What it adds for the model. */
  readonly context?: readonly string[];
}

/** A call that was let run. */
export interface StartedCall {
  /** The call's id. */
  readonly callId: string;
  /** The tool that runs. */
  readonly tool: string;
  /** What it runs with, before its schema parsed it. */
  readonly input: unknown;
  /** What it came to, raw: no hook has reviewed it. Default: that is not known. */
  readonly raw?: ToolResult;
}

/** A question, and what a person answered. */
export interface Answered {
  /** What they were asked. */
  readonly question: Question;
  /** What they answered. */
  readonly answer: PersonAnswer;
  /** Whether an agent that is a tool has it, since it asked. Default: false. */
  readonly taken?: boolean;
}
