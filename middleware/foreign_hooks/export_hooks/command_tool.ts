/**
 * The hooks at `tool` and `approval` as outputs of events about calls.
 *
 * @module
 */
import {
  allow,
  type Approval,
  ask,
  failed,
  type Scope,
  textOf,
  type ToolContext,
  type ToolResult,
} from "../../../mod.ts";
import { canonicalJson } from "../../../src/core/kit.ts";
import { partsOf, responseOf } from "../claude_hooks/points/result.ts";
import { dialects } from "../claude_hooks/config/dialect.ts";
import { isObject } from "../kit/fields.ts";
import { approve } from "./approve.ts";
import { descend } from "./descent.ts";
import type { Onions } from "./onions.ts";
import { type CommandInput, type CommandOutput, decided, specific } from "./output.ts";
import type { OnError } from "./runs.ts";

/** Creates the outputs. */
export function commandTool(onions: Onions, onError: OnError) {
  async function PreToolUse(scope: Scope, event: CommandInput): Promise<CommandOutput> {
    const { tool_name: name, tool_input: input } = event;
    const outcome = await descend(onions.tool, callOf(scope, event));
    if ("answer" in outcome) return decided("deny", textOf(outcome.answer)); // the model receives the answer as the reason
    const { descent: { reached, cancel } } = outcome;
    cancel();
    if (reached.name !== name) return decided("deny", `It is only allowed as ${reached.name}`);
    const verdict = await approved({ ...event, tool_input: reached.input }, scope, allow());
    if (verdict.type === "deny") return decided("deny", verdict.reason);
    const updated = verdict.type === "allow" && verdict.input !== undefined ? verdict.input : reached.input;
    const updatedInput = canonicalJson(updated) === canonicalJson(input) ? {} : { updatedInput: updated };
    if (verdict.type === "ask") return decided("ask", verdict.questions.join("\n"), updatedInput);
    return "updatedInput" in updatedInput ? specific("PreToolUse", updatedInput) : {};
  }

  async function PermissionRequest(scope: Scope, event: CommandInput): Promise<CommandOutput> {
    const verdict = await approved(event, scope, ask(`Run ${event.tool_name}?`));
    if (verdict.type === "ask") return {};
    const { input } = verdict.type === "allow" ? verdict : {};
    const decision = verdict.type === "deny"
      ? { behavior: "deny", message: verdict.reason }
      : { behavior: "allow", ...(input !== undefined && { updatedInput: input }) };
    return specific("PermissionRequest", { decision });
  }

  async function approved(event: CommandInput, scope: Scope, inner: Approval): Promise<Approval> {
    return await approve(onions, callOf(scope, event), inner, onError);
  }

  async function PostToolUse(scope: Scope, event: CommandInput): Promise<CommandOutput> {
    const given: ToolResult = { type: "result", status: "ok", parts: partsOf(event.tool_response) };
    const result = await onions.tool(callOf(scope, event), () => Promise.resolve(given));
    const { context = [] } = result;
    if (result.status !== "ok") return { decision: "block", reason: [textOf(result), ...context].join("\n") };
    return specific("PostToolUse", {
      ...(canonicalJson(result.parts) !== canonicalJson(given.parts) &&
        { updatedToolOutput: responseOf(result, dialects.qoder.response) }),
      ...(context.length > 0 && { additionalContext: context.join("\n") }),
    });
  }

  async function PostToolUseFailure(scope: Scope, event: CommandInput): Promise<CommandOutput> {
    const { context = [] } = await onions.tool(callOf(scope, event), () => Promise.resolve(failed(event.error)));
    return context.length === 0 ? {} : specific("PostToolUseFailure", { additionalContext: context.join("\n") });
  }

  return { PreToolUse, PermissionRequest, PostToolUse, PostToolUseFailure };
}

function callOf(
  scope: Scope,
  { tool_name: name, tool_input: input, tool_use_id: id, session_id }: CommandInput,
): ToolContext {
  return {
    ...scope,
    call: { id, name, input },
    tool: undefined,
    name,
    input: isObject(input) ? input : {},
    batchId: session_id,
    index: 0,
    turn: 0,
    resumed: false,
    edited: false,
  };
}
