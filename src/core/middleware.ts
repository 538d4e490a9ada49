/**
 * Middleware: a named bundle of hooks and tools.
 *
 * @module
 */
import type { Hook } from "./onion.ts";
import type {
  AbortContext,
  Answer,
  Approval,
  ApprovalContext,
  CompactChange,
  CompactContext,
  Compaction,
  ErrorContext,
  ErrorDecision,
  ExecuteContext,
  InputChange,
  InputContext,
  InputResult,
  ModelChange,
  ModelContext,
  ModelResponse,
  PromptChange,
  PromptContext,
  RunResult,
  SessionChange,
  SessionContext,
  Stop,
  StopContext,
  SubagentChange,
  SubagentContext,
  ToolChange,
  ToolContext,
  TurnChange,
  TurnContext,
  TurnResult,
} from "./points.ts";
import type { Change, Scope } from "./scope.ts";
import type { Session } from "./session.ts";
import type { AnyTool } from "./tool.ts";
import type { ModelRequest } from "../model/model.ts";
import type { Event } from "../protocol/event.ts";
import type { ToolResult } from "../protocol/message.ts";
import type { Call } from "../protocol/part.ts";

/** The hooks around one call. */
export interface ToolHooks<V = unknown, I = unknown> {
  /** Around a call: rewrites its input, answers in place of it, or changes its result. Runs in the model's order, before and after the work. */
  readonly tool?: Hook<ToolContext<V, I>, ToolChange<I>, ToolResult>;
  /** Decides whether a call runs. A deny is final, and an error denies. */
  readonly approval?: Hook<ApprovalContext<V, I>, Change, Approval>;
  /**
   * Around the work itself, in parallel: timing, retry, timeout, cache, locks. `next()` rejects with the error of a tool that throws, and may be called again after
   * it has settled if the tool is `idempotent` or has begun a step.
   * A hook at `tool` receives a result with the status "error" instead.
   */
  readonly execute?: Hook<ExecuteContext<V, I>, Change, ToolResult>;
}

/** The context of a middleware's `groups`. */
export interface GroupContext<V = unknown> extends Scope<V> {
  /** The call as the model made it, before all hooks. */
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

/** A named bundle of hooks around calls, and of tools. */
export interface ToolMiddleware<V = unknown, I = unknown> extends ToolHooks<V, I> {
  /** The name in errors and traces, and for the order that others declare. Default: its place in `use`. */
  readonly name?: string;
  /** Names of middleware that must stand before it in `use`, if they are used. */
  readonly after?: readonly string[];
  /** Names of middleware that must stand after it in `use`, if they are used. */
  readonly before?: readonly string[];
  /** Names of middleware that must be used too. */
  readonly requires?: readonly string[];
  /** The version of this interface that it was written for; this is version 1. `agent()` refuses a version that it does not know. Default: every version is accepted. */
  readonly interfaceVersion?: number;
  /** Tools that it adds. */
  readonly tools?: readonly AnyTool<V>[];
}

/** A named bundle of hooks and tools, with `tool`, `approval` and `execute` of `ToolHooks`. The first one in `use` is the outermost. */
export interface Middleware<V = unknown> extends ToolMiddleware<V> {
  /**
   * Whether agents that are tools of this agent inherit the middleware, around their own: true for all of it, false for nothing. Default: its
   * `approval` hook only, so a subagent may be stricter and never looser.
   */
  readonly inherit?: boolean;
  /**
   * Requests groups of calls: "alone" for a call that must be decided, run and reviewed before the next call of the response is decided. Consecutive
   * "parallel" calls share a group. If several middleware have `groups`, one "alone" is enough; so is `parallel: false` of the tool. A function that
   * throws counts as "alone". Default: all calls of a response share a group.
   */
  readonly groups?: (ctx: GroupContext<V>) => "parallel" | "alone" | Promise<"parallel" | "alone">;
  /** Beginnings of the names of tools that its hooks add. A tool of `run()`, such as one that a client declares, is refused with such a name. Default: none. */
  readonly toolPrefixes?: readonly string[];
  /** Around every run or resume of a session. */
  readonly session?: Hook<SessionContext<V>, SessionChange, RunResult>;
  /** Around the acceptance of messages from outside: a prompt, history, steering, a reply, and other texts of a client that the model reads. Runs once for each message, and never in a subagent. */
  readonly input?: Hook<InputContext<V>, InputChange, InputResult>;
  /** From a prompt's arrival to its final answer. */
  readonly prompt?: Hook<PromptContext<V>, PromptChange, Answer>;
  /** Around one model response and its calls. */
  readonly turn?: Hook<TurnContext<V>, TurnChange, TurnResult>;
  /** Around one request and its streamed response, also for a summary: see `purpose`. `next()` may be called again. */
  readonly model?: Hook<ModelContext<V>, ModelChange, ModelResponse>;
  /** Decides whether the agent is done. */
  readonly stop?: Hook<StopContext<V>, Change, Stop>;
  /** Around one compaction of the transcript. */
  readonly compact?: Hook<CompactContext<V>, CompactChange, Compaction>;
  /** Around one child run. */
  readonly subagent?: Hook<SubagentContext<V>, SubagentChange, RunResult>;
  /** Around the handling of one failure. */
  readonly error?: Hook<ErrorContext<V>, Change, ErrorDecision>;
  /** Around the cleanup of a run that is cut short. */
  readonly abort?: Hook<AbortContext<V>, Change, void>;
  /**
   * Changes what the store keeps of a session, before each save, and the messages of the result. For middleware that hides secrets: it also sees what no hook
   * receives, such as a prompt that waits for its hooks, and context that other hooks add. Identities, positions and versions must stay as they are.
   */
  readonly "~save"?: (session: Omit<Session, "version">, scope: Scope<V>) => Omit<Session, "version">;
  /** Changes each request right before it is sent to the model. For middleware that hides secrets: it also sees what inner hooks add. */
  readonly "~request"?: (request: ModelRequest, scope: Scope<V>) => ModelRequest;
  /**
   * Changes each event of a trace before it is cut. For middleware that hides secrets: it also reaches the events of hooks outside of it, and those of `input` hooks
   * of a run that continues.
   */
  readonly "~mask"?: (event: Event, scope: Scope<V>) => Event;
  /** Steps for further positions of a run, for features of the engine. */
  readonly "~steps"?: object;
  /** The middleware of another agent that this one was inherited from. */
  readonly "~origin"?: Middleware;
}

/** Returns the name of a middleware in errors, traces and chains. */
export function nameOf({ name }: Middleware, index: number): string {
  return name ?? `use[${index}]`;
}
