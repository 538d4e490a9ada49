/**
 * The state of a run: plain JSON that a store saves as it is. Only the loop assigns it.
 *
 * The diagram of the positions is in `README.md`. Each box in it is an onion of hooks, and begins at its entry position: `prompt` for session and prompt,
 * `model` for turn. If its hooks have code after `next()`, it has an end position (`turnEnd`, `promptEnd`): the inner work is saved, and the hooks of the box
 * have not returned. `prompt` follows `incoming` if the agent has `input` hooks. An exit can be reached from every position.
 *
 * @module
 */
import type { Answer, ModelResponse } from "./points.ts";
import type { StepScope } from "./run.ts";
import type { Event, FinishReason } from "../protocol/event.ts";
import type { AssistantMessage, CallResult, InnerCalls, Message, ToolResult, Usage } from "../protocol/message.ts";
import type { Call } from "../protocol/part.ts";
import type { Asking, PersonAnswer, Question } from "../protocol/question.ts";

// The contract between the loop and the steps.

/** Handles one position. `scope` is the one that the surrounding hooks passed inward. */
export type Step<A extends At = At> = (
  scope: StepScope,
  position: PositionAt<A>,
  checkpoint: Checkpoint,
) => Promise<Move>;

/** Sets progress inside a position, and saves it. Never rejects: a failure becomes an exit. Returns no promise if there is nothing to wait for. */
export type Checkpoint = (position: Position, options?: CheckpointOptions) => Promise<void> | undefined;

/** The options of a checkpoint. */
export interface CheckpointOptions {
  /** New values of counters. */
  readonly counters?: Partial<Counters>;
  /** The answers to keep. */
  readonly answers?: readonly AnsweredQuestion[];
  /** False to keep the progress in memory until the next save. Default: true. */
  readonly save?: boolean;
  /** False if the save may wait for the next tick of the event loop. Default: true. */
  readonly urgent?: boolean;
}

/** The steps of a region, by position. */
export type Steps = { readonly [A in At]?: Step<A> | Region };

/** An onion around the steps of several positions. */
export interface Region {
  /** The first position. A region that is entered at another one is resumed. */
  readonly entry: At;
  /** The steps inside the onion, by position. */
  readonly steps: Steps;
  /** Runs the onion, and decides how the run continues from the position that was reached. */
  enter(scope: StepScope, position: Position, inner: Inner): Promise<Move>;
}

/** Runs the loop inside a region until the position leaves it. `first` is applied before. */
export type Inner = (scope: StepScope, first?: Move) => Promise<Position>;

/** The values of a turn that only its steps need. */
export interface TurnState {
  /** Texts for the requests of this turn. */
  readonly context: readonly string[];
  /** The model's response, once there is one. */
  response?: ModelResponse;
}

// The saved state: the position, the records of calls, the moves and the exits.

/** The position of a run. */
export type Position =
  /** The prompt, after messages that came with it, is stored, and the `input` hooks have not returned. Agents without such hooks begin at `prompt`. */
  | { readonly at: "incoming"; readonly messages: readonly Message[]; readonly keep?: number }
  /** The prompt is stored and not accepted. `keep` is the number of messages of the transcript that stay when it is accepted. Default: all. */
  | { readonly at: "prompt"; readonly messages: readonly Message[]; readonly keep?: number }
  /** `shown`: clients have seen a part of an answer, which `model.reset` takes back. Default: false. */
  | { readonly at: "model"; readonly turn: number; readonly shown?: boolean }
  /** The message with calls waits here until each call has a result, so every saved transcript is valid. */
  | {
    readonly at: "tools";
    readonly turn: number;
    readonly message: AssistantMessage;
    readonly calls: readonly CallRecord[];
  }
  /** The last `added` messages of the transcript are the turn's. */
  | { readonly at: "turnEnd"; readonly turn: number; readonly added: number }
  /** `message` is the answer that the agent would finish with. */
  | { readonly at: "stop"; readonly turn: number; readonly message: AssistantMessage }
  | { readonly at: "promptEnd"; readonly answer: Answer }
  /** A run that only compacts the transcript. */
  | { readonly at: "compact"; readonly instructions: string };

/** The name of a position. */
export type At = Position["at"];

/** The position with the name `A`. */
export type PositionAt<A extends At> = Extract<Position, { readonly at: A }>;

/** The progress of one call. `running` is saved before the tool starts, so a crash cannot run it twice unnoticed. */
export type CallRecord =
  & {
    readonly call: Call;
    /** The calls inside the subagent that does the work, as far as clients have seen them. */
    readonly inner?: InnerCalls;
    /** The journaled steps of its tool, in groups, of which only the last one grows. Empty: the first step has begun. Undefined: the tool has used none. */
    readonly steps?: readonly (readonly CallStep[])[];
  }
  & (
    /** Not decided: the hooks run from the start. */
    | { readonly state: "pending" }
    /**
     * Waits for a person. Without questions, the run waits. `approval` is the decision that the guards made, if they made one. `saved` is the JSON of a tool that
     * paused itself.
     */
    | {
      readonly state: "waiting";
      readonly questions: readonly Question[];
      readonly approval?: SavedApproval;
      readonly saved?: unknown;
    }
    /** Allowed with this tool and input. The tool may have started. */
    | { readonly state: "running" } & AllowedCall
    /** The tool has returned. No hook has reviewed the result, so it is not in the transcript. */
    | { readonly state: "ran"; readonly raw: ToolResult } & AllowedCall
    | { readonly state: "done"; readonly result: ReviewedResult }
  );

/** A journaled step that has run. */
export interface CallStep {
  /** The name, unique in its call. */
  readonly name: string;
  /** The value, as JSON. Default: undefined. */
  readonly value?: unknown;
}

/** The tool and the input of a call that was allowed. */
export interface AllowedCall {
  /** The name of the tool. */
  readonly name: string;
  /** The input, before the tool's schema. */
  readonly input: unknown;
  /** A text for the model beside the result: that a person changed the input. */
  readonly note?: string;
}

/** A result that waits for its batch, and the context that it adds for the model. */
export interface ReviewedResult extends CallResult {
  /** Texts for the model, after the results of the batch. */
  readonly context?: readonly string[];
  /** The input that the transcript keeps in place of the model's. */
  readonly rewritten?: { readonly input: unknown };
}

/** A text that asks a person, and its source. */
export interface AskedText {
  /** The text. */
  readonly text: string;
  /** The middleware that asks. Default: the tool itself. */
  readonly middleware?: string;
  /** The key of the question. Default: the text. */
  readonly key?: string;
}

/** A decision of the guards, saved while its call waits. A guard that fails when the run continues keeps its part, as long as the input is the same. */
export interface SavedApproval {
  /** The name of the tool. */
  readonly name: string;
  /** The input that they decided about, before the tool's schema. */
  readonly input: unknown;
  /** The input after the tool's schema, as JSON. */
  readonly parsed: unknown;
  /** The texts of the question. Empty if nothing was asked. */
  readonly asked: readonly AskedText[];
  /** The middleware that decided, and the questions of inner layers that it answered. */
  readonly guards: readonly (readonly [middleware: string, answered: readonly AskedText[]])[];
}

/** A question, and a person's answer. */
export interface AnsweredQuestion {
  /** The question that was asked. */
  readonly question: Question;
  /** The decision that led to the question. Default: none is known. */
  readonly approval?: SavedApproval;
  /** The person's answer. */
  readonly answer: PersonAnswer;
  /** True if the tool that asked has received the answer. Default: false. */
  readonly taken?: boolean;
}

/** The end of a run, or a pause and its questions, which share their schemas once they are saved. */
export interface Exit extends Asking {
  /** The kind of the exit. */
  readonly status: ExitStatus;
  /** The reason, for people. */
  readonly reason?: string;
  /** The answer to the prompt, after its hooks. */
  readonly answer?: Answer;
  /** Restores the transcript to the start of the run. */
  readonly rollback?: boolean;
  /** Keeps no result of the open batch. */
  readonly withhold?: boolean;
  /** The thrown value of a failure. It is never saved. */
  readonly error?: unknown;
}

/** The kinds of exits. */
export type ExitStatus = keyof typeof exits;

/**
 * The precedence of exits, and the meaning of each one. An exit replaces one of a lower `rank`; among equal ranks the first one stays. `result` is
 * the status of the run's result. `cleanup`: the `abort` hooks run. `run.end()` sets `ended` for "done" and `limited` for "limit". `refused` is an answer of a
 * hook, without cleanup, and `cancelled` is set by `run.end()`, with cleanup: clients read `cancelled` for both.
 */
export const exits = {
  done: { rank: 0, result: "done", cleanup: false },
  limit: { rank: 0, result: "limit", cleanup: false },
  refused: { rank: 0, result: "cancelled", cleanup: false },
  paused: { rank: 1, result: "paused", cleanup: false },
  ended: { rank: 2, result: "done", cleanup: false },
  limited: { rank: 2, result: "limit", cleanup: false },
  cancelled: { rank: 2, result: "cancelled", cleanup: true },
  failed: { rank: 2, result: "failed", cleanup: true },
  deadline: { rank: 2, result: "limit", cleanup: true },
  aborted: { rank: 2, result: "aborted", cleanup: true },
} as const;

/** A reason to stop a run from outside of its steps, and what follows. The decision of `stop` hooks is the `Stop` of `points.ts`. */
export interface Stop {
  /** The text for hooks, clients and people. */
  readonly reason: string;
  /** The exit of the run, unless it has one. */
  readonly exit: "aborted" | "deadline";
  /** True if the `abort` hooks run. */
  readonly cleanup: boolean;
  /** False to leave the session as it is stored. */
  readonly saves: boolean;
  /** True if another process continues the run. */
  readonly continues: boolean;
  /** True if a caller has given the text, which has no meaning for the engine. Default: the stop is one of `stops`. */
  readonly requested?: true;
}

/** The consequences of most stops: the run ends here. */
const ends = { exit: "aborted", cleanup: true, saves: true, continues: false } as const;

/** The stops of the engine and of servers. A comment names the part that sets the stop. */
export const stops = {
  /** A client, or a caller without a text. */
  stop: { ...ends, reason: "stop" },
  /** The `signal` of a run, also that of its parent. */
  signal: { ...ends, reason: "signal" },
  /** A server whose client has left. */
  clientGone: { ...ends, reason: "client-gone" },
  /** A new prompt with `busy: "replace"`. */
  replaced: { ...ends, reason: "replaced" },
  /** A server whose store fails. */
  unrecorded: { ...ends, reason: "unrecorded" },
  /** The limit `time`. */
  deadline: { ...ends, reason: "deadline", exit: "deadline" },
  /** The limit `recoveries`. */
  recoveries: { ...ends, reason: "recoveries", exit: "deadline" },
  /** The end of a run that has failed, for work that nothing waits for. */
  failure: { ...ends, reason: "failure" },
  /** A claim of the session of a run whose process has died, and a writer whose session another process has. */
  lost: { ...ends, reason: "lost" },
  /** A process that shuts down, for a run that only its memory has. */
  shutdown: { ...ends, reason: "shutdown" },
  /** A process that shuts down, once it saves the run for another one. */
  handedOver: { ...ends, reason: "shutdown", cleanup: false, continues: true },
} as const satisfies { readonly [name: string]: Stop };

/** Returns the stop for a text of a caller. */
export function stopFor(reason: string): Stop {
  return { ...stops.stop, reason, requested: true };
}

/** The amounts of a run that limits bound. */
export interface Counters {
  /** Model responses. */
  readonly turns: number;
  /** Tool calls. */
  readonly calls: number;
  /** Continuations at `stop` since the last batch of calls. */
  readonly continuations: number;
  /** Batches of calls. A resumed batch counts again. */
  readonly batches: number;
  /** Retries of the structured answer. */
  readonly outputs: number;
  /** Responses in a row that ended within a call, for the same reason. */
  readonly cuts: number;
}

/** All saved state of a run. A new prompt, a pause, a hand-over and a crash differ only in the position. */
export interface RunSnapshot {
  /** The run's id. */
  readonly id: string;
  /** The start of the run, in milliseconds since 1970. */
  readonly startedAt: number;
  /** The position in the run. */
  readonly position: Position;
  /** Set for a run that has paused. A run without an exit is running, or its process died. */
  readonly exit?: Exit;
  /** The amounts that limits bound. */
  readonly counters: Counters;
  /** The finish reason of the last response. Undefined before the first one. */
  readonly finish?: FinishReason;
  /** The tokens used so far. */
  readonly usage: Usage;
  /** State of middleware, by name. */
  readonly state: readonly (readonly [string, unknown])[];
  /** A person's answers to calls without a result. */
  readonly answers: readonly AnsweredQuestion[];
  /** The number of messages before the run. */
  readonly before: number;
  /** The number of the run's last event. */
  readonly events: number;
  /** The idempotency id of the request that started or resumed the run. */
  readonly request?: string;
  /** The trace context of the request that started or resumed the run. Default: it had none. */
  readonly traceparent?: string;
  /** The number of times that the run was lost since a person last answered it. */
  readonly recoveries?: number;
}

/** The decision of a step. The loop applies all of it and saves once, so the transcript and the position cannot disagree. */
export interface Move {
  /** The next position. Default: the same one. */
  readonly to?: Position;
  /** Messages to append to the transcript. */
  readonly add?: readonly Message[];
  /** The number of messages of the transcript that stay. Default: all. */
  readonly keep?: number;
  /** A transcript to continue with instead. */
  readonly replace?: readonly Message[];
  /** New values of counters. */
  readonly counters?: Partial<Counters>;
  /** The finish reason of a response that has ended. */
  readonly finish?: FinishReason;
  /** Events to emit after the move is saved: exactly once, also if the process dies in between. */
  readonly events?: readonly Event[];
  /** Ends or pauses the run. */
  readonly exit?: Exit;
  /** Fails after the move. Hooks around the step may catch it. */
  readonly error?: { readonly thrown: unknown };
}

/** A call that a run makes in place of asking its model. The run ends with the result. */
export interface DirectCall {
  /** The name of the tool. */
  readonly name: string;
  /** The input, before the tool's schema. */
  readonly input: unknown;
}

/** The name under which the state of a run has its direct call, if its client has called a tool in place of the model. */
export const directCall = "jizai.call";

/** The counters of a new run. */
export const noCounters: Counters = { turns: 0, calls: 0, continuations: 0, batches: 0, outputs: 0, cuts: 0 };
