/**
 * The points of a call: tool, approval and execute.
 *
 * @module
 */
import type { ToolResult } from "../../../protocol/message.ts";
import type { Call } from "../../../protocol/part.ts";
import type { AnyTool, ToolExecutionContext } from "../../agent/tool.ts";
import type { AskOptions, Change, Scope } from "../scope.ts";

/** The context of `tool`. `I` is the type of the input, known inside `only(tool, ...)`. */
export interface ToolContext<V = unknown, I = unknown> extends Scope<V> {
  /** The call as the model made it. */
  readonly call: Call;
  /** The tool, or undefined if there is none of that name. */
  readonly tool: AnyTool | undefined;
  /** The name of the tool. */
  readonly name: string;
  /** The input as JSON. */
  readonly input: I;
  /** The id of the batch of calls. */
  readonly batchId: string;
  /** The call's place in the model's order, from 0. */
  readonly index: number;
  /** The number of the turn, from 1. */
  readonly turn: number;
  /** True if the call has saved progress from before a pause or a crash. */
  readonly resumed: boolean;
  /** True if a guard or a person edited the input after the hooks had seen the call: it replaces the input that they left. The hooks run again. */
  readonly edited: boolean;
}
/** The change of `tool`. */
export interface ToolChange<I = unknown> extends Change {
  /** The input for the inner layers. */
  readonly input?: I;
  /** The name of another tool. */
  readonly name?: string;
}

/** The context of `approval`. */
export interface ApprovalContext<V = unknown, I = unknown> extends Scope<V> {
  /** The call as the model made it. */
  readonly call: Call;
  /** The tool that would run. */
  readonly tool: AnyTool | undefined;
  /** The name of the tool. */
  readonly name: string;
  /** The input that would run, as JSON: after every hook and the tool's schema. One that JSON cannot hold is here as it was before the schema. */
  readonly input: I;
  /** The same as `input`. */
  readonly parsed: unknown;
  /** The input before the tool's schema, as the `tool` hooks left it. An `allow()` with this input changes nothing. */
  readonly unparsed: unknown;
  /** The number of the turn, from 1. */
  readonly turn: number;
  /** The result of a hook that answered in place of the tool. */
  readonly proposed?: ToolResult;
}
/** The decision about one call. */
export type Approval =
  | { readonly type: "allow"; readonly input?: unknown }
  | ({ readonly type: "ask"; readonly questions: readonly string[] } & AskOptions)
  | { readonly type: "deny"; readonly reason: string };

/** The context of `execute`, where `next()` rejects with the error of a tool that throws. */
export interface ExecuteContext<V = unknown, I = unknown> extends ToolExecutionContext<V> {
  /** The call as the model made it. */
  readonly call: Call;
  /** The tool. */
  readonly tool: AnyTool;
  /** The parsed input. */
  readonly input: I;
}
