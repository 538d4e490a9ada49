/**
 * Hooks for the servers of tools that a run uses: what a server asks a person during a call (elicitation), and whether it can be reached.
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

/** Hooks for servers of tools. If one throws about a question, the question is declined. */
export interface ServerHooks {
  /** Answers in place of a person, or returns undefined. The person is asked if no hook answers. */
  readonly asked?: (question: Elicitation, ctx: Scope) => Promise<ElicitationAnswer | undefined>;
  /** Receives the answer of a person, and returns the answer that the server receives. */
  readonly answered?: (question: Elicitation, answer: ElicitationAnswer, ctx: Scope) => Promise<ElicitationAnswer>;
  /** Called before the run connects to a server. */
  readonly connecting?: (server: string, ctx: Scope) => void;
  /** Called if the run cannot connect to a server, and continues without its tools. */
  readonly failed?: (server: string, error: unknown, ctx: Scope) => void;
}

const hooksByRun = /* @__PURE__ */ new WeakMap<Run, readonly ServerHooks[]>();

/**
 * Adds hooks for servers of tools to a run, from a hook at `session` outside of `mcp()`, which calls them.
 *
 * ```ts
 * import type { Middleware } from "@jizai/jizai";
 * import { hookServers } from "@jizai/jizai/kit";
 *
 * const declineAll: Middleware = {
 *   name: "decline_all",
 *   session(ctx, next) {
 *     hookServers(ctx, { asked: () => Promise.resolve({ action: "decline" }) });
 *     return next();
 *   },
 * };
 * ```
 */
export function hookServers({ run }: Scope, hooks: ServerHooks): void {
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

/** Tells the hooks that a run connects to a server, or that it could not. */
export function noteConnection(server: string, ctx: Scope, failure?: { readonly error: unknown }): void {
  for (const { connecting, failed } of hooksByRun.get(ctx.run) ?? []) {
    if (failure) failed?.(server, failure.error, ctx);
    else connecting?.(server, ctx);
  }
}

/** Reports the failure of a hook, and declines. */
function refuse(error: unknown, ctx: Scope): ElicitationAnswer {
  ctx.signal.throwIfAborted();
  ctx.run.report(error);
  return declined;
}
