/**
 * What every hook and every tool is given: the run, its signal, a way to tell who watches, and what the caller knows.
 *
 * @module
 */
import type { Emit } from "../protocol/event.ts";
import type { PersonAnswer, Question } from "../protocol/question.ts";
import type { Usage } from "../protocol/message.ts";
import type { End, EndOptions, Pause } from "./interrupt.ts";
import type { Limits } from "./limits.ts";

/** What one run is known by, and how a hook ends it. */
export interface Run {
  /** The run's id; the same after a pause. */
  readonly id: string;
  /** The session it belongs to. */
  readonly session: string;
  /** When it began, in milliseconds since 1970. */
  readonly startedAt: number;
  /** The names of the agents above it, outermost first; empty for a run of its own. */
  readonly path: readonly string[];
  /** What a person answered, in a run that goes on after a pause: a reply without a call is one to the run's own question. */
  readonly answers: readonly PersonAnswer[];
  /** The name of the agent that runs. */
  readonly agent: string;
  /** The run that it works for, where its agent is a tool of another. */
  readonly parent: Run | undefined;
  /** The call of that run that it works for. */
  readonly call: string | undefined;
  /** What middleware keep for the run, by name: use `state()`. */
  readonly state: Map<string, unknown>;
  /** What middleware keep for the session, by name: use `state()`. Agents beneath share it. */
  readonly sessionState: Map<string, unknown>;
  /** Tokens so far. */
  readonly usage: Usage;
  /** How far it is from its limits. */
  readonly used: Used;
  /** The limits it runs under. */
  readonly limits: Limits;
  /** Whether it was told to end with one more answer. */
  readonly finishing: boolean;
  /** Tells the operator of a failure that a hook got over; gives the id that a client may be told. */
  report(error: unknown): string;
  /** Ends the run: throw what it returns to end here and now, or return normally to end after this point. */
  end(reason: string, options?: EndOptions): End;
  /**
   * Pauses the run with a question: throw what it returns. What a person replies is in `answers` when it goes on. Thrown after `next()`, what lies beneath
   * comes out again then with what it came to; but at `model`, `execute` and `subagent` it is done again.
   */
  pause(question: string, asked?: QuestionOptions): Pause;
}

/** What may be said of a question beside its text. Default of both: what can be answered to any. */
export type QuestionOptions = Pick<Question, "schema" | "suggestions">;

/** What has been used of the limits. */
export interface Used {
  /** Model responses. */
  readonly turns: number;
  /** Tool calls. */
  readonly calls: number;
  /** How often `stop` went on, since the last batch of calls. */
  readonly continuations: number;
}

/** What every context carries. */
export interface Scope<V = unknown> {
  /** The run it happens in. */
  readonly run: Run;
  /** Aborts when what runs here should stop. */
  readonly signal: AbortSignal;
  /** Tells whoever watches. */
  readonly emit: Emit;
  /** What the caller knows: the user, the request. */
  readonly vars: V;
}

/** What may be changed beneath every point. */
export interface Change {
  /** Narrows what lies beneath: `AbortSignal.any([ctx.signal, ...])` is a timeout that cancels. */
  readonly signal?: AbortSignal;
  /** Filters every event of what lies beneath. May rewrite any, and drop only deltas, progress, notices and data. */
  readonly emit?: Emit;
}

/** The scope of a context, without what else it says. */
export function scopeOf<V>({ run, signal, emit, vars }: Scope<V>): Scope<V> {
  return { run, signal, emit, vars };
}
