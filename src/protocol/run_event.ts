/**
 * Events of the start and the end of a run.
 *
 * @module
 */
import type { Usage } from "./message.ts";
import type { Question } from "./question.ts";
import type { FinishReason } from "./response_event.ts";

/**
 * The kind of a failure:
 *
 * - `rate_limited`: too many requests or tokens
 * - `overloaded`: the provider of the model has no capacity
 * - `unavailable`: the provider is unreachable, failed, cut the response, or is out of credit
 * - `unauthorized`: the key is missing, wrong, or lacks a permission
 * - `context`: the request is larger than the model's context
 * - `internal`: anything else, such as an invalid request
 */
export type FailureCode = "rate_limited" | "overloaded" | "unavailable" | "unauthorized" | "context" | "internal";

/** Events at the start and the end of a run; only the engine emits them. */
export type RunEvent =
  | {
    readonly type: "run.started";
    readonly run: string;
    readonly session: string;
    readonly resumed: boolean;
    /** The id that the server gave to the request that began or resumed the run. */
    readonly request?: string;
    /** The tokens that the run had used before it was resumed. Default: it begins. */
    readonly usage?: Usage;
  }
  | {
    readonly type: "run.finished";
    readonly status: "done" | "cancelled" | "limit";
    readonly text: string;
    readonly reason?: string;
    /** The finish reason of the last response. Default: there was none. */
    readonly finish?: FinishReason;
    readonly output?: unknown;
    readonly usage: Usage;
  }
  | {
    readonly type: "run.paused";
    /** In JSON, a schema that several questions have is in `schemas` of the event once, and `schema` of each is `{ "$ref": "#/schemas/0" }`. */
    readonly questions: readonly Question[];
    readonly usage: Usage;
    /** The session, if the server has no store: the client sends it back with the answers. */
    readonly resumeToken?: string;
  }
  | {
    readonly type: "run.failed";
    /** The id under which `onError` received the error. */
    readonly error: string;
    readonly message: string;
    readonly code: FailureCode;
    /** Milliseconds to wait before the next attempt, if the provider of the model asks for it. */
    readonly retryAfter?: number;
    readonly usage: Usage;
  }
  | { readonly type: "run.aborted"; readonly reason: string; readonly text: string; readonly usage: Usage };
