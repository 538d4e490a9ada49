/**
 * Hooks for what a server asks a person during a call (elicitation): they answer in place of the person, or change the person's answer.
 *
 * @module
 */
import type { Run, Scope } from "../scope.ts";

/** A question of a server to a person. */
export interface Elicitation {
  /** The name of the server. */
  readonly server: string;
  /** The question: `message`, and a form (`requestedSchema`) or a page to open (`mode` "url", `url`). */
  readonly params: { readonly [name: string]: unknown };
}

/** An answer to a server: `content` has the values of a form that is accepted. */
export interface ElicitationAnswer {
  /** The decision of the person. */
  readonly action: "accept" | "decline" | "cancel";
  /** The values of the form. */
  readonly content?: { readonly [name: string]: unknown };
}

/** Hooks for the questions of servers. If one throws, the question is declined. */
export interface ElicitationHooks {
  /** Answers in place of a person, or returns undefined. The person is asked if no hook answers. */
  readonly asked?: (question: Elicitation, ctx: Scope) => Promise<ElicitationAnswer | undefined>;
  /** Receives the answer of a person, and returns the answer that the server receives. */
  readonly answered?: (question: Elicitation, answer: ElicitationAnswer, ctx: Scope) => Promise<ElicitationAnswer>;
}

const hooksByRun = /* @__PURE__ */ new WeakMap<Run, readonly ElicitationHooks[]>();

/**
 * Adds hooks for the questions of servers to a run, from a hook at `session`: `mcp()` asks them.
 *
 * ```ts
 * import type { Middleware } from "@jizai/jizai";
 * import { hookElicitations } from "@jizai/jizai/kit";
 *
 * const declineAll: Middleware = {
 *   name: "decline_all",
 *   session(ctx, next) {
 *     hookElicitations(ctx, { asked: () => Promise.resolve({ action: "decline" }) });
 *     return next();
 *   },
 * };
 * ```
 */
export function hookElicitations({ run }: Scope, hooks: ElicitationHooks): void {
  hooksByRun.set(run, [...hooksByRun.get(run) ?? [], hooks]);
}

const declined: ElicitationAnswer = { action: "decline" };

/** Returns the answer of the first hook that answers in place of a person. */
export async function answerElicitation(question: Elicitation, ctx: Scope): Promise<ElicitationAnswer | undefined> {
  try {
    for (const { asked } of hooksByRun.get(ctx.run) ?? []) {
      const answer = await asked?.(question, ctx);
      if (answer) return answer;
    }
    return undefined;
  } catch (error) {
    return refuse(error, ctx);
  }
}

/** Returns the answer that a server receives for that of a person. */
export async function reviewElicitation(
  question: Elicitation,
  answer: ElicitationAnswer,
  ctx: Scope,
): Promise<ElicitationAnswer> {
  try {
    let current = answer;
    for (const { answered } of hooksByRun.get(ctx.run) ?? []) {
      current = await answered?.(question, current, ctx) ?? current;
    }
    return current;
  } catch (error) {
    return refuse(error, ctx);
  }
}

/** Reports the failure of a hook, and declines. */
function refuse(error: unknown, ctx: Scope): ElicitationAnswer {
  ctx.signal.throwIfAborted();
  ctx.run.report(error);
  return declined;
}
