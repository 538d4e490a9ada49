/**
 * Events of one call of a tool: its start, the decision about it, and its result.
 *
 * @module
 */
import type { CallResult } from "./message.ts";
import type { Question } from "./question.ts";

/** The decision about one call. */
export type Decision = "allow" | "deny";

/** The source of the decision: policy, which is a guard or the tool itself; a person's answer; or a rule that one of them made. */
export type Decider = "policy" | "person" | "rule";

/** Events of one call of a tool. Every event names its turn and the id of its call. */
export type ToolEvent =
  | {
    readonly type: "tool.started";
    readonly turn: number;
    readonly call: string;
    readonly name: string;
    readonly batch: string;
    readonly index: number;
  }
  | ({ readonly type: "approval.asked"; readonly turn: number; readonly call: string } & Question)
  | {
    readonly type: "approval.decided";
    readonly turn: number;
    readonly call: string;
    readonly decision: Decision;
    readonly by: Decider;
    readonly reason?: string;
  }
  | { readonly type: "tool.progress"; readonly turn: number; readonly call: string; readonly data: unknown }
  | { readonly type: "tool.finished"; readonly turn: number; readonly call: string; readonly result: CallResult };
