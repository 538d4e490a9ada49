/**
 * All points, composed once when an agent is made.
 *
 * @module
 */
import { approvalLaw, askTool } from "./approval.ts";
import { modelLaw, request } from "./ask_model.ts";
import type { Onions } from "./blueprint.ts";
import { compactLaw } from "./compact.ts";
import { arrive, toolLaw } from "./decide.ts";
import { abortLaw, decideFailure, errorLaw, keepPartial } from "./failure.ts";
import { answerPrompt, promptLaw, stop, stopLaw, takeTurn, turnLaw } from "./loop.ts";
import * as onion from "./onion.ts";
import { execute, executeLaw } from "./perform.ts";
import type { Middleware } from "./points.ts";
import { openSession, sessionLaw } from "./run.ts";
import type { Change, Scope } from "./scope.ts";
import { runSubagent, subagentLaw } from "./subagent.ts";
import { traced } from "./trace.ts";
import { trim } from "./trim.ts";

/** The name of a middleware in errors, traces and chains. */
export function nameOf({ name }: Middleware, index: number): string {
  return name ?? `use[${index}]`;
}

/** Folds the hooks of every point around its core. */
export function compose(use: readonly Middleware[], trace: boolean): Onions {
  function fold<C extends Scope, D extends Change, R, E>(
    core: Parameters<typeof onion.compose<C, D, R, E>>[1],
    law: onion.Law<C, D, R, E>,
  ): onion.Onion<C, R, E> {
    const { point } = law;
    const hooks = use.flatMap((middleware, index) => {
      const hook = middleware[point] as onion.Hook<C, D, R> | onion.Layered<C, D, R> | undefined; // the law is that of its point
      if (!hook) return [];
      const name = nameOf(middleware, index);
      if (trace) return [{ name, hook: traced(point, name, hook.bind(middleware)) }];
      return [{ name, hook: "~layer" in hook ? hook : hook.bind(middleware) }];
    });
    return onion.compose(hooks, core, law);
  }

  return {
    session: fold(openSession, sessionLaw),
    prompt: fold(answerPrompt, promptLaw),
    turn: fold(takeTurn, turnLaw),
    model: fold(request, modelLaw),
    tool: fold(arrive, toolLaw),
    approval: fold(askTool, approvalLaw),
    execute: fold(execute, executeLaw),
    stop: fold(stop, stopLaw),
    compact: fold(trim, compactLaw),
    subagent: fold(runSubagent, subagentLaw),
    error: fold(decideFailure, errorLaw),
    abort: fold(keepPartial, abortLaw),
  };
}
