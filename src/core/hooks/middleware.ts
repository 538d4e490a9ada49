/**
 * Middleware: a named bundle of hooks and tools.
 *
 * @module
 */
import type { Call, ToolResult } from "../../protocol/message.ts";
import type { AnyTool } from "../agent/tool.ts";
import type { Steps } from "../run/step.ts";
import type { Hook } from "./onion.ts";
import type * as points from "./points.ts";
import type { Change, Scope } from "./scope.ts";

/** The hooks around one call. */
export interface ToolHooks<V = unknown, I = unknown> {
  /** Around a call: rewrites its input, answers in place of it, or changes its result. Runs in the model's order, before and after the work. */
  readonly tool?: Hook<points.ToolContext<V, I>, points.ToolChange<I>, ToolResult>;
  /** Decides whether a call runs. A deny is final, and an error denies. */
  readonly approval?: Hook<points.ApprovalContext<V, I>, Change, points.Approval>;
  /** Around the work itself, in parallel: timing, retry, timeout, cache, locks. `next()` may be called again. */
  readonly execute?: Hook<points.ExecuteContext<V, I>, Change, ToolResult>;
}

/** The context of a middleware's `groups`. */
export interface GroupContext<V = unknown> extends Scope<V> {
  /** The call as the model made it, before any hook. */
  readonly call: Call;
  /** The tool. Undefined for an unknown one. */
  readonly tool: AnyTool | undefined;
  /** The name of the tool. */
  readonly name: string;
  /** The turn, from 1. */
  readonly turn: number;
  /** The tool's own statement about the call: its `parallel`, or true if it is `readOnly`. Undefined if it makes none. */
  readonly parallel: boolean | undefined;
}

/** A named bundle of hooks and tools. The first one in `use` is the outermost. */
export interface Middleware<V = unknown> extends ToolHooks<V> {
  /** The name in errors and traces, and for the order that others declare. Default: its place in `use`. */
  readonly name?: string;
  /** Names of middleware that must stand before it in `use`, if they are used. */
  readonly after?: readonly string[];
  /** Names of middleware that must be used too. */
  readonly requires?: readonly string[];
  /**
   * Whether agents that are tools of this agent inherit the middleware, around their own: true for all of it, false for nothing. Default: its
   * `approval` hook only, so a child agent may be stricter and never looser.
   */
  readonly inherit?: boolean;
  /**
   * Requests groups of calls: "alone" for a call that must be decided, run and reviewed before the next call of the response is decided. Consecutive
   * "parallel" calls share a group. If several middleware have `groups`, one "alone" is enough; so is `parallel: false` of the tool. A function that
   * throws counts as "alone". Default: all calls of a response share a group.
   */
  readonly groups?: (ctx: GroupContext<V>) => "parallel" | "alone";
  /** Tools that it adds. */
  readonly tools?: readonly AnyTool<V>[];
  /** Around every run or resume of a session. */
  readonly session?: Hook<points.SessionContext<V>, points.SessionChange, points.RunResult>;
  /** Around the acceptance of messages from outside: a prompt, history, steering, a reply. Runs once for each message, and never in a child agent. */
  readonly input?: Hook<points.InputContext<V>, points.InputChange, points.InputResult>;
  /** From a prompt's arrival to its final answer. */
  readonly prompt?: Hook<points.PromptContext<V>, points.PromptChange, points.Answer>;
  /** Around one model response and its calls. */
  readonly turn?: Hook<points.TurnContext<V>, points.TurnChange, points.TurnResult>;
  /** Around one request and its streamed response. `next()` may be called again. */
  readonly model?: Hook<points.ModelContext<V>, points.ModelChange, points.ModelResponse>;
  /** Decides whether the agent is done. */
  readonly stop?: Hook<points.StopContext<V>, Change, points.Stop>;
  /** Around one compaction of the transcript. */
  readonly compact?: Hook<points.CompactContext<V>, points.CompactChange, points.Compaction>;
  /** Around one child run. */
  readonly subagent?: Hook<points.SubagentContext<V>, points.SubagentChange, points.RunResult>;
  /** Around the handling of one failure. */
  readonly error?: Hook<points.ErrorContext<V>, Change, points.ErrorDecision>;
  /** Around the cleanup of a run that is cut short. */
  readonly abort?: Hook<points.AbortContext<V>, Change, void>;
  /** Steps for further positions of a run, for features of the engine. */
  readonly "~steps"?: Steps<never>;
}

/** Returns the name of a middleware in errors, traces and chains. */
export function nameOf({ name }: Middleware, index: number): string {
  return name ?? `use[${index}]`;
}

/** Throws a `TypeError` that names both middleware and the fix if `use` breaks an order that one of them declares, or if a declared name is not unique. */
export function checkOrder(use: readonly Middleware[]): void {
  const names = use.map(({ name }) => name);
  use.forEach((middleware, index) => {
    const { after = [], requires = [] } = middleware;
    const name = nameOf(middleware, index);
    if (typeof middleware === "function") throw new TypeError(`Cannot use "${name}": call it, as ${name}()`);
    for (const other of [...after, ...requires]) {
      if (names.indexOf(other) !== names.lastIndexOf(other)) {
        throw new TypeError(
          `Cannot use "${name}" with two middleware named "${other}": expected one, give one another name`,
        );
      }
    }
    for (const other of requires) {
      if (!names.includes(other)) {
        throw new TypeError(`Cannot use "${name}" without "${other}": add ${other}() to use`);
      }
    }
    for (const other of after) {
      if (names.lastIndexOf(other) > index) {
        throw new TypeError(`Cannot use "${name}" before "${other}": put ${other}() first in use`);
      }
    }
  });
}
