/**
 * What hooks at `tool` and `approval` answer to `before_tool`, `after_tool` and `approve_tool`.
 *
 * @module
 */
import * as z from "zod";
import { allow, textOf, type ToolContext, type ToolResult } from "../../../mod.ts";
import { canonicalJson } from "../../../src/core/kit.ts";
import { fromWireResult, toWireResult, wireResult } from "../rpc_hooks/wire/result.ts";
import { fields, struct, text } from "../rpc_hooks/wire/struct.ts";
import { judge } from "./judge.ts";
import type { Onions } from "./onions.ts";
import { descend, type Passage } from "./passage.ts";
import { type Foreign, type OnError, scopeOf } from "./runs.ts";
import { type Meta, meta, type Runs } from "./underway.ts";

const call = { meta, tool: text, arguments: fields };
const beforeTool = struct(call);
const afterTool = struct({ ...call, result: wireResult.optional(), duration: z.number().default(0) });

/** Answers about calls. */
export function askingTool(onions: Onions, { runOf, underway }: Runs, onError: OnError) {
  async function before(params: unknown): Promise<unknown> {
    const { meta, tool, arguments: input } = beforeTool.parse(params);
    const arrived = await descend(onions.tool, callOf(runOf(meta), meta, tool, input));
    if ("answer" in arrived) {
      const { answer } = arrived;
      if (answer.status === "denied") return { action: "deny_tool", reason: textOf(answer) };
      return { action: "respond", result: toWireResult(whole(answer)) };
    }
    const { passage } = arrived;
    const { reached } = passage;
    underway(meta).calls.push(passage);
    const made = { tool: reached.name, arguments: reached.input };
    return canonicalJson(made) === canonicalJson({ tool, arguments: input })
      ? { action: "continue" }
      : { action: "modify", call: made };
  }

  async function after(params: unknown): Promise<unknown> {
    const { meta, tool, arguments: input, result, duration } = afterTool.parse(params);
    const given = result ? fromWireResult(result) : fromWireResult(wireResult.parse({}));
    const passage = taken(underway(meta).calls, tool, input);
    const answer = whole(
      passage
        ? await passage.come(given)
        : await onions.tool(callOf(runOf(meta), meta, tool, input), () => Promise.resolve(given)),
    );
    if (canonicalJson(toWireResult(answer)) === canonicalJson(toWireResult(given))) return { action: "continue" };
    return { action: "modify", result: { tool, arguments: input, result: toWireResult(answer), duration } };
  }

  async function approve(params: unknown): Promise<unknown> {
    const { meta, tool, arguments: input } = beforeTool.parse(params);
    const verdict = await judge(onions, callOf(runOf(meta), meta, tool, input), allow(), onError);
    if (verdict.type === "deny") return { approved: false, reason: verdict.reason };
    if (verdict.type === "ask") return { approved: false, reason: verdict.questions.join("\n") };
    const same = verdict.input === undefined || canonicalJson(verdict.input) === canonicalJson(input);
    return same
      ? { approved: true }
      : { approved: false, reason: `It may only be made with ${JSON.stringify(verdict.input)}` };
  }

  return { before, after, approve };
}

/** A call of another system. It says no id: none is known of it. */
function callOf(run: Foreign, { TurnID, Iteration }: Meta, name: string, input: unknown): ToolContext {
  return {
    ...scopeOf(run),
    call: { id: "", name, input },
    tool: undefined,
    name,
    input,
    batchId: `${TurnID}:${Iteration}`,
    index: 0,
    turn: Iteration,
    resumed: false,
  };
}

/** The one of several calls that this came of: what the other system says of it is its tool and its input. */
function taken(
  calls: Passage<ToolContext, ToolResult>[],
  tool: string,
  input: unknown,
): Passage<ToolContext, ToolResult> | undefined {
  const same = calls.findIndex(({ reached }) =>
    reached.name === tool && canonicalJson(reached.input) === canonicalJson(input)
  );
  const found = same >= 0 ? same : calls.findIndex(({ reached }) => reached.name === tool);
  return found < 0 ? undefined : calls.splice(found, 1)[0];
}

/** A result that says itself what it says to the model beside. */
function whole({ context = [], ...result }: ToolResult): ToolResult {
  if (context.length === 0) return result;
  return {
    ...result,
    parts: [...result.parts, ...context.map((text) => ({ type: "text" as const, text: `\n\n${text}` }))],
  };
}
