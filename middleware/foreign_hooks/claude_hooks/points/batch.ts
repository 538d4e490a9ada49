/**
 * `PostToolBatch`: asked when all calls of a response have come out.
 *
 * @module
 */
import { callsOf, type Scope, textOf, type ToolContext, type ToolResult, type TurnResult } from "../../../../mod.ts";
import { addContext } from "../../kit/call.ts";
import { blockOf, contextOf } from "../ask/answers.ts";
import type { Hooks } from "../ask/hooks.ts";
import type { BatchCall } from "../ask/memory.ts";

/** Records a call that has come out. After the last one, asks PostToolBatch and adds its context to the result. */
export async function completeBatch(hooks: Hooks, ctx: ToolContext, result: ToolResult): Promise<ToolResult> {
  const { call: { id }, name, input } = ctx;
  const call = { tool_name: name, tool_input: input, tool_use_id: id, tool_response: textOf(result) };
  const batch = hooks.memory.batch.update(ctx, (batch) => ({ ...batch, calls: { ...batch.calls, [id]: call } }));
  const calls = batch.ids.flatMap((id) => batch.calls[id] ?? []);
  return calls.length < batch.ids.length ? result : addContext(result, await askBatch(hooks, ctx, calls));
}

/** Asks PostToolBatch about a batch of which another middleware answered a call. The next request has its context. */
export async function finishBatch(hooks: Hooks, ctx: Scope, { response, results }: TurnResult): Promise<void> {
  const { calls, asked } = hooks.memory.batch.get(ctx);
  if (results.length === 0 || asked) return;
  const inputs = Object.fromEntries(callsOf(response).map(({ id, input }) => [id, input]));
  const made = results.map(({ name, callId, parts }) => ({
    ...{ tool_name: name, tool_input: inputs[callId], tool_use_id: callId },
    ...calls[callId],
    tool_response: textOf({ parts }),
  }));
  hooks.addLater(ctx, await askBatch(hooks, ctx, made));
}

async function askBatch(hooks: Hooks, ctx: Scope, tool_calls: BatchCall[]): Promise<readonly string[]> {
  hooks.memory.batch.update(ctx, (batch) => ({ ...batch, asked: true }));
  const answers = await hooks.ask("PostToolBatch", ctx, () => ({ tool_calls }));
  const blocked = blockOf(answers);
  if (!hooks.endOf("PostToolBatch", ctx, answers) && blocked !== undefined) hooks.end(ctx, blocked);
  return contextOf(answers);
}
