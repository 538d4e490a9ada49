/**
 * One call, before it is made and after.
 *
 * @module
 */
import * as z from "zod";
import {
  type AnyTool,
  type EndOptions,
  type Message,
  type Scope,
  skipped,
  state,
  textOf,
  type ToolChange,
  type ToolContext,
  type ToolResult as OurResult,
} from "../../../mod.ts";
import { canonicalJson } from "../../../src/core/kit.ts";
import { consult, type ToolCall, type ToolCallContext, type ToolResult, type YoiHook } from "./hooks.ts";
import { putOff, putOffBatch, takeUp } from "./open.ts";
import { answers } from "./results.ts";

/** The call at which a hook aborted the run, and its batch. */
const aborted = state<{ readonly call: string; readonly batch: string } | undefined>(
  "yoi_hooks.aborted",
  () => undefined,
);

const callForm: z.ZodType<ToolCall> = z.object({ id: z.string(), name: z.string(), input: z.unknown() });
const resultForm: z.ZodType<ToolResult> = z.object({
  tool_use_id: z.string(),
  content: z.string(),
  is_error: z.boolean(),
});
const inForm = z.object({ call: callForm });
const outForm = z.object({ call: callForm, result: resultForm });

/** A call of a tool that there is. */
export type Calling = ToolContext & { readonly tool: AnyTool };

/** A call that is to be made, as hooks have changed it. */
export interface Made {
  /** Tells it from a result. */
  readonly type: "made";
  readonly ctx: Calling;
  readonly call: ToolCall;
  readonly change: ToolChange;
}

/** Asks hooks before a call is made: gives the call, or what it comes to without being made. */
export async function before(hooks: readonly YoiHook[], ctx: Calling): Promise<Made | OurResult> {
  const { signal, call: { id }, name, input } = ctx;
  takeUp(ctx, ctx.call);
  const { draft, answer } = await consult(hooks, {
    ctx,
    point: "tool",
    event: "pre_tool_call",
    ask: (hook, draft) => hook.pre_tool_call?.(Object.assign(draft, about(ctx)), { signal }),
    draft: { call: { id, name, input } },
    form: inForm,
    answers: answers.pre_tool_call,
  });
  if (answer?.[0] === "Abort") throw abort(ctx, answer[1]);
  if (answer?.[0] === "Pause") throw ctx.run.pause(`A hook paused the run before ${name}. Go on?`);
  if (answer?.[0] !== "Skip") return { type: "made", ctx, call: draft.call, change: changeOf(ctx, draft.call) };
  putOff(ctx, ctx.call);
  return notNow;
}

/** Asks hooks after a call was made: gives what it came to, as they have changed it. */
export async function after(
  hooks: readonly YoiHook[],
  { ctx, call }: Made,
  came: OurResult,
): Promise<OurResult> {
  if (came.status === "aborted") return came; // it was cut short: there is nothing to look at
  if (aborted.get(ctx)?.batch === ctx.batchId) return notNow; // nothing of the batch counts
  const { signal } = ctx;
  const result: ToolResult = { tool_use_id: call.id, content: textOf(came), is_error: came.status !== "ok" };
  const { draft, answer } = await consult(hooks, {
    ctx,
    point: "tool",
    event: "post_tool_call",
    ask: (hook, draft) => hook.post_tool_call?.(Object.assign(draft, about(ctx)), { signal }),
    draft: { call, result },
    form: outForm,
    answers: answers.post_tool_call,
  });
  if (answer?.[0] === "Abort") throw abort(ctx, answer[1], { withhold: true });
  const { content, is_error } = draft.result;
  return {
    ...came,
    ...(content !== result.content && { parts: retold(came, content) }),
    ...(is_error !== result.is_error && { status: is_error ? "error" : "ok" }),
  };
}

/** Puts off every call of the batch in which a hook aborted the run. */
export function leaveAborted(ctx: Scope, messages: readonly Message[]): void {
  const { call } = aborted.get(ctx) ?? {};
  if (call !== undefined) putOffBatch(ctx, call, messages);
}

const notNow = skipped("Not made now: it is made again later.");

function abort(ctx: Calling, reason: string, options: Pick<EndOptions, "withhold"> = {}): Error {
  aborted.set(ctx, { call: ctx.call.id, batch: ctx.batchId });
  return ctx.run.end(reason, { as: "failed", ...options });
}

/** What differs from the call as it came in. */
function changeOf(ctx: Calling, { name, input }: ToolCall): ToolChange {
  return {
    ...(name !== ctx.name && { name }),
    ...(input !== ctx.input && canonicalJson(input) !== canonicalJson(ctx.input) && { input }),
  };
}

function about({ tool, call: { id }, batchId, index }: Calling): Omit<ToolCallContext, "call"> {
  const { name, description, schema } = tool.definition;
  return {
    meta: { name, description, input_schema: schema },
    tool,
    context: { call_id: id, batch_id: batchId, call_index: index },
  };
}

/** The parts of a result, with another text. */
function retold({ parts }: OurResult, text: string): OurResult["parts"] {
  return [{ type: "text", text }, ...parts.filter((part) => part.type !== "text")];
}
