/**
 * The hooks at `tool` and `approval` as answers to `before_tool`, `after_tool` and `approve_tool`.
 *
 * @module
 */
import * as z from "zod";
import { allow, textOf, type ToolContext, type ToolResult } from "../../../mod.ts";
import { canonicalJson } from "../../../src/core/kit.ts";
import { fromWireResult, toWireResult, wireResult } from "../rpc_hooks/wire/result.ts";
import { fields, struct, text } from "../rpc_hooks/wire/struct.ts";
import { approve } from "./approve.ts";
import { descend, type Descent } from "./descent.ts";
import type { Onions } from "./onions.ts";
import { type Meta, meta, type RpcRuns } from "./rpc_runs.ts";
import { type ForeignRun, type OnError, scopeOf } from "./runs.ts";

const call = { meta, tool: text, arguments: fields };
const beforeTool = struct(call);
const afterTool = struct({ ...call, result: z.optional(wireResult), duration: z.number().default(0) });

/** Creates the answers. */
export function rpcTool(onions: Onions, { runOf, pendingOf }: RpcRuns, onError: OnError) {
  async function before(params: unknown): Promise<unknown> {
    const { meta, tool, arguments: input } = z.parse(beforeTool, params);
    const outcome = await descend(onions.tool, callOf(runOf(meta), meta, tool, input));
    if ("answer" in outcome) {
      const { answer } = outcome;
      if (answer.status === "denied") return { action: "deny_tool", reason: textOf(answer) };
      return { action: "respond", result: toWireResult(inlineContext(answer)) };
    }
    const { descent } = outcome;
    const { reached } = descent;
    pendingOf(meta).calls.push(descent);
    const changed = { tool: reached.name, arguments: reached.input };
    return canonicalJson(changed) === canonicalJson({ tool, arguments: input })
      ? { action: "continue" }
      : { action: "modify", call: changed };
  }

  async function after(params: unknown): Promise<unknown> {
    const { meta, tool, arguments: input, result, duration } = z.parse(afterTool, params);
    const given = result ? fromWireResult(result) : fromWireResult(z.parse(wireResult, {}));
    const descent = takeCall(pendingOf(meta).calls, tool, input);
    const answer = inlineContext(
      descent
        ? await descent.finish(given)
        : await onions.tool(callOf(runOf(meta), meta, tool, input), () => Promise.resolve(given)),
    );
    if (canonicalJson(toWireResult(answer)) === canonicalJson(toWireResult(given))) return { action: "continue" };
    return { action: "modify", result: { tool, arguments: input, result: toWireResult(answer), duration } };
  }

  async function decide(params: unknown): Promise<unknown> {
    const { meta, tool, arguments: input } = z.parse(beforeTool, params);
    const verdict = await approve(onions, callOf(runOf(meta), meta, tool, input), allow(), onError);
    if (verdict.type === "deny") return { approved: false, reason: verdict.reason };
    if (verdict.type === "ask") return { approved: false, reason: verdict.questions.join("\n") };
    const isSame = verdict.input === undefined || canonicalJson(verdict.input) === canonicalJson(input);
    return isSame
      ? { approved: true }
      : { approved: false, reason: `It is only allowed with ${JSON.stringify(verdict.input)}` };
  }

  return { before, after, approve: decide };
}

/** Returns the context of a call of another system, which has no id. */
function callOf(run: ForeignRun, { TurnID, Iteration }: Meta, name: string, input: unknown): ToolContext {
  return {
    ...scopeOf(run),
    call: { id: "", name, input },
    tool: undefined,
    name,
    input,
    batchId: `${TurnID}:${Iteration}`,
    index: 0,
    turn: Iteration + 1,
    resumed: false,
    edited: false,
  };
}

/** Removes and returns the call of a result. The other system identifies it by its tool and its input only. */
function takeCall(
  calls: Descent<ToolContext, ToolResult>[],
  tool: string,
  input: unknown,
): Descent<ToolContext, ToolResult> | undefined {
  const same = calls.findIndex(({ reached }) =>
    reached.name === tool && canonicalJson(reached.input) === canonicalJson(input)
  );
  const found = same >= 0 ? same : calls.findIndex(({ reached }) => reached.name === tool);
  return found < 0 ? undefined : calls.splice(found, 1)[0];
}

/** Returns the result with its context in its own text. */
function inlineContext({ context = [], ...result }: ToolResult): ToolResult {
  if (context.length === 0) return result;
  return {
    ...result,
    parts: [...result.parts, ...context.map((text) => ({ type: "text" as const, text: `\n\n${text}` }))],
  };
}
