/**
 * The points of a turn: turn, model, stop and compact.
 *
 * @module
 */
import type { Model, ModelRequest } from "../../../model/model.ts";
import type { CompactTrigger, FinishReason } from "../../../protocol/event.ts";
import type { AssistantMessage, CallResult, Message, Usage, UserMessage } from "../../../protocol/message.ts";
import type { AnswerPart } from "../../../protocol/part.ts";
import type { Change, QuestionOptions, Scope } from "../scope.ts";

/** The context of `turn`. */
export interface TurnContext<V = unknown> extends Scope<V> {
  /** The number of the turn, from 1. */
  readonly index: number;
  /** The messages so far. */
  readonly transcript: readonly Message[];
  /** Texts to add to this turn's request. They are not stored. */
  readonly context: readonly string[];
  /** True if the turn has saved progress from before a pause or a crash. */
  readonly resumed: boolean;
}
/** The change of `turn`. It has no effect on a resumed turn. */
export interface TurnChange extends Change {
  /** The given list with more texts. Without the given ones, those of outer hooks are lost. */
  readonly context?: readonly string[];
  /** A transcript to continue with instead, such as a compacted one. It is stored. */
  readonly transcript?: readonly Message[];
}
/** One model response and the results of its calls. */
export interface TurnResult {
  /** The model's response. */
  readonly response: ModelResponse;
  /** The results, in the order of the calls. */
  readonly results: readonly CallResult[];
}

/** The context of `model`. */
export interface ModelContext<V = unknown> extends Scope<V> {
  /** The request. Changes affect this request only. */
  readonly request: ModelRequest;
  /** The number of the attempt in this turn, from 1, counted by the engine. */
  readonly attempt: number;
  /** The number of the turn, from 1. Of a summary, that of the turn around it, or 0 in a run that only compacts. */
  readonly turn: number;
  /**
   * turn: the response is one of the conversation. summary: a compaction asks, see `CompactContext.askModel`; the request contains a part of the conversation as
   * a text, no tools, and clients receive nothing of the response. A hook that adds something to the conversation leaves such a request as it is.
   */
  readonly purpose: "turn" | "summary";
}
/** The change of `model`. */
export interface ModelChange extends Change {
  /** Fields of the request to replace. The others stay. */
  readonly request?: Partial<ModelRequest>;
}
/** The response of a model. `reply()` makes one. */
export interface ModelResponse {
  /** Text, reasoning and calls, in order. */
  readonly parts: readonly AnswerPart[];
  /** The reason why the model stopped. */
  readonly finish: FinishReason;
  /** The tokens of the request and the response. */
  readonly usage: Usage;
  /** The id of the model that answered. */
  readonly model: string;
  /** The number of requests, set by the engine. */
  readonly attempts: number;
}

/** The context of `stop`. */
export interface StopContext<V = unknown> extends Scope<V> {
  /** The message that would be the final answer. */
  readonly message: AssistantMessage;
  /** The messages so far. */
  readonly transcript: readonly Message[];
  /** The number of times that `stop` has continued since the last batch of calls. */
  readonly continuations: number;
  /** The limit of continuations. */
  readonly limit: number;
  /** True if the question was reached before a pause or a crash. */
  readonly resumed: boolean;
}
/** The decision at `stop`. */
export type Stop =
  | { readonly type: "finish" }
  | { readonly type: "continue"; readonly messages: readonly UserMessage[] }
  | ({ readonly type: "pause"; readonly question: string } & QuestionOptions);

/** The context of `compact`. */
export interface CompactContext<V = unknown> extends Scope<V> {
  /** The cause of the compaction. */
  readonly trigger: CompactTrigger;
  /** The messages so far. */
  readonly transcript: readonly Message[];
  /** Instructions for the summary. */
  readonly instructions: string;
  /** The estimated number of tokens to reach: half of the limit. */
  readonly budget: number;
  /** The model of the run. */
  readonly model: Model;
  /**
   * Sends a request, such as one for a summary, through the `model` hooks of the run: retry, fallback, timeouts, budgets and masks apply to it. They read
   * "summary" as its `purpose`. The fields that are not given are empty; the model is that of the run. Clients receive nothing of the response, and its tokens
   * count for the run. The request stops if `signal` aborts. Default: the signal of the run. Throws what the model or a hook throws.
   */
  readonly askModel: (request: Partial<ModelRequest>, signal?: AbortSignal) => Promise<ModelResponse>;
}
/** The change of `compact`. */
export interface CompactChange extends Change {
  /** Messages to compact instead, such as masked ones. */
  readonly transcript?: readonly Message[];
  /** Instructions for the summary. */
  readonly instructions?: string;
}
/** The result of a compaction, and the tokens it used. */
export type Compaction =
  & (
    | { readonly type: "compacted"; readonly messages: readonly Message[] }
    | { readonly type: "declined"; readonly reason: string }
  )
  & { readonly usage?: Usage };
