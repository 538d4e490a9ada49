/**
 * What an agent is made of, composed once: what every run of it reads and none changes.
 *
 * @module
 */
import type { Model } from "../model/model.ts";
import type { Event } from "../protocol/event.ts";
import type { ToolResult } from "../protocol/message.ts";
import type { Entry } from "./entry.ts";
import type { Limits } from "./limits.ts";
import type { Live } from "./live.ts";
import type { Onion } from "./onion.ts";
import type { Output } from "./output.ts";
import type * as points from "./points.ts";
import type { Scope } from "./scope.ts";
import type { AnyTool } from "./tool.ts";

/** What the engine knows of one request and its tries. */
export interface Asking {
  readonly live: Live;
  readonly turn: number;
  /** How many requests were sent. */
  attempts: number;
  /** Whether a try that failed had shown something. */
  shown: boolean;
}

/** What the engine knows of one child run. */
export interface ChildRun {
  readonly blueprint: Blueprint;
  readonly parent: Live;
  readonly entry: Entry;
}

/** Every point, composed. */
export interface Onions {
  readonly session: Onion<points.SessionContext, points.RunResult, Live>;
  readonly prompt: Onion<points.PromptContext, points.Answer, Live>;
  readonly turn: Onion<points.TurnContext, points.TurnResult, Live>;
  readonly model: Onion<points.ModelContext, points.ModelResponse, Asking>;
  readonly tool: Onion<points.ToolContext, ToolResult, Entry>;
  readonly approval: Onion<points.ApprovalContext, points.Approval, Entry>;
  readonly execute: Onion<points.ExecuteContext, ToolResult, Entry>;
  readonly stop: Onion<points.StopContext, points.Stop, Live>;
  readonly compact: Onion<points.CompactContext, points.Compaction, Live>;
  readonly subagent: Onion<points.SubagentContext, points.RunResult, ChildRun>;
  readonly error: Onion<points.ErrorContext, points.ErrorDecision, Live>;
  readonly abort: Onion<points.AbortContext, void, Live>;
}

/** What an agent is made of, before it is composed. */
export interface Parts {
  readonly name: string;
  readonly description: string;
  readonly model: Model | ((scope: Scope) => Model | Promise<Model>);
  readonly instructions: string | ((scope: Scope) => string | Promise<string>);
  readonly tools: readonly AnyTool[];
  readonly limits: Limits;
  readonly output: Output | undefined;
  readonly observers: readonly ((event: Event) => void)[];
  readonly use: readonly points.Middleware[];
  readonly trace: boolean;
}

/** What an agent is made of. */
export interface Blueprint extends Parts {
  readonly onions: Onions;
  /** `child` as it is beneath this one: with the middleware that it inherits around its own. */
  heir(child: Blueprint): Blueprint;
}
