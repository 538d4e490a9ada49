/**
 * The scope: the part of every context that hooks and tools share.
 *
 * @module
 */
import type { End, EndOptions, Pause } from "./interrupt.ts";
import type { Limits } from "./limits.ts";
import type { Emit } from "../protocol/event.ts";
import type { Usage } from "../protocol/message.ts";
import type { PersonAnswer, QuestionOptions } from "../protocol/question.ts";

/** A run as hooks and tools see it. */
export interface Run {
  /** The run's id. It stays the same after a pause. */
  readonly id: string;
  /** The session's id. */
  readonly session: string;
  /** The owner of the session, if the run was given one. A child run has the owner of its parent. */
  readonly owner: string | undefined;
  /** The start of the run, in milliseconds since 1970. */
  readonly startedAt: number;
  /** Returns the time, in milliseconds since 1970. Use it in place of `Date.now()`: a replayed run has the times of its recording. */
  now(): number;
  /** The names of the parent agents, outermost first. Empty for a run without a parent. */
  readonly path: readonly string[];
  /** A person's answers, in a run that continues after a pause. A reply without a call id answers the run's own question. */
  readonly answers: readonly PersonAnswer[];
  /** The name of the agent. */
  readonly agent: string;
  /** The parent run, if the agent is a tool of another one. */
  readonly parent: Run | undefined;
  /** The id of the parent's call that this run works for. */
  readonly call: string | undefined;
  /** The trace context of the request that started or resumed the run, if it had one. Undefined in a child run. */
  readonly traceparent?: string | undefined;
  /** State of middleware for this run, by name. Use `state()`. */
  readonly state: Map<string, unknown>;
  /** State of middleware for the session, by name. Subagents share it. Use `state()`. */
  readonly sessionState: Map<string, unknown>;
  /** The tokens used so far. */
  readonly usage: Usage;
  /** The amounts that count against the limits. */
  readonly used: Used;
  /** The limits of the run. */
  readonly limits: Limits;
  /** True if the run was asked to end with one more answer. */
  readonly finishing: boolean;
  /** Reports an error to the operator. Returns the id that a client may see. */
  report(error: unknown): string;
  /**
   * Ends the run with a reason that clients read. Throw the returned value to end at once, or return normally to end after this point. `as` is the status of the
   * result, by default "cancelled". Throws a `TypeError` for an unknown option or status.
   *
   * ```ts
   * import { agent, type Middleware } from "@jizai/jizai";
   * import { scripted } from "@jizai/jizai/model/scripted";
   * import { assertEquals } from "@std/assert";
   *
   * const frugal: Middleware = {
   *   model(ctx, next) {
   *     throw ctx.run.end("The budget is used", { as: "limit" });
   *   },
   * };
   * const { status, reason } = await agent({ model: scripted("Hello!"), use: [frugal] }).run("Hi").result;
   * assertEquals([status, reason], ["limit", "The budget is used"]);
   * ```
   */
  end(reason: string, options?: EndOptions): End;
  /**
   * Pauses the run with a question. Throw the returned value. The reply is in `answers` when the run continues. If it is thrown after `next()`,
   * the inner layers return the same result again; at `model`, `execute` and `subagent` they run again. The question is about the run: tools of one batch
   * that pause read the same reply. To ask about one call, use `ask` of the tool, or `ask()` at `approval`.
   */
  pause(question: string, options?: QuestionOptions): Pause;
}

/** The options of `ask()`. */
export interface AskOptions extends QuestionOptions {
  /**
   * The identity of the question. An "always allow" of a person answers later questions of the same middleware about the same tool only if they have the same key.
   * Default: the text of the question.
   */
  readonly key?: string;
}

/** The amounts that count against the limits. */
export interface Used {
  /** The number of model responses. */
  readonly turns: number;
  /** The number of tool calls. */
  readonly calls: number;
  /** The number of times that `stop` has continued since the last batch of calls. */
  readonly continuations: number;
}

/** The values that every context contains. */
export interface Scope<V = unknown> {
  /** The run. */
  readonly run: Run;
  /** Aborts when the work should stop. */
  readonly signal: AbortSignal;
  /** Emits an event. */
  readonly emit: Emit;
  /** Values of the caller: the user, the request. */
  readonly vars: V;
}

/** The changes that every point allows. */
export interface Change {
  /** A narrower signal for the inner layers. `AbortSignal.any([ctx.signal, AbortSignal.timeout(ms)])` is a timeout that cancels. */
  readonly signal?: AbortSignal;
  /** A filter for every event of the inner layers. It may rewrite every event, and drop only deltas, progress, notices and data. */
  readonly emit?: Emit;
}
