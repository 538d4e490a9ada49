/**
 * The points `tool`, `approval` and `execute`: `before_tool`, `approve_tool` and `after_tool`.
 *
 * @module
 */
import type * as z from "zod";
import {
  denied,
  deny,
  type Middleware,
  state,
  textOf,
  type ToolChange,
  type ToolContext,
  type ToolResult,
} from "../../../../mod.ts";
import { inputThatRuns, isSameJson } from "../../kit/call.ts";
import { objectOf } from "../../kit/fields.ts";
import type { Link } from "../chain.ts";
import { type Hooks, lengthOf, nanoseconds } from "../hooks.ts";
import type { AfterTool, BeforeTool } from "../wire/input.ts";
import { afterToolReply, beforeToolReply } from "../wire/reply.ts";
import { fromWireResult, toWireResult, type WireResult } from "../wire/result.ts";

/** The ids of the calls that hooks have answered. */
const answered = state("rpc_hooks.answered", (): readonly string[] => []);

/** Creates the hooks around a call, if a hook needs them. */
export function toolHooks(hooks: Hooks): Pick<Middleware, "tool" | "approval" | "execute"> {
  const { chain, observers } = hooks;
  const isNeeded = chain.has("tool") || observers.has("tool_exec_start", "tool_exec_end", "tool_exec_skipped");
  return { ...(isNeeded && around(hooks)), ...(chain.has("approve") && approval(hooks)) };
}

function around({ chain, observers, notes, about, warn }: Hooks): Pick<Middleware, "tool" | "execute"> {
  function responded(ctx: ToolContext, { tool: Tool, arguments: Arguments }: BeforeTool, wire: WireResult): ToolResult {
    observers.notify("tool_exec_start", ctx, ctx.turn, () => ({ Tool, Arguments }));
    observers.notify("tool_exec_end", ctx, ctx.turn, () => endOf(Tool, wire, 0));
    return fromWireResult(wire);
  }

  function refused(ctx: ToolContext, reason: string): ToolResult {
    const why = reasoned("Tool execution denied by hook", reason);
    observers.notify("tool_exec_skipped", ctx, ctx.turn, () => ({ Tool: ctx.name, Reason: why }));
    return denied(why);
  }

  /** Asks `after_tool` about a result. */
  async function reviewed(ctx: ToolContext, call: BeforeTool, result: ToolResult): Promise<ToolResult> {
    const { status } = result;
    if (status === "denied" || status === "skipped") {
      observers.notify("tool_exec_skipped", ctx, ctx.turn, () => ({ Tool: call.tool, Reason: textOf(result) }));
    }
    if (["denied", "skipped", "aborted"].includes(status)) return result;
    const { took } = notes(ctx.run);
    const duration = nanoseconds(took.get(ctx.call.id) ?? 0);
    took.delete(ctx.call.id);
    const wire = toWireResult(result);
    const params: AfterTool = {
      ...about(ctx, ctx.turn, "turn.tool.after"),
      tool: call.tool,
      arguments: objectOf(result.input ?? call.arguments),
      result: wire,
      duration,
    };
    const { params: after } = await chain.ask(ctx, afterTool, params, ctx.turn);
    observers.notify("tool_exec_end", ctx, ctx.turn, () => endOf(after.tool || call.tool, after.result, duration));
    return isSameJson(after.result, wire) ? result : fromWireResult(after.result, result);
  }

  return {
    async tool(ctx, next) {
      const call: BeforeTool = {
        ...about(ctx, ctx.turn, "turn.tool.before"),
        tool: ctx.name,
        arguments: objectOf(await inputThatRuns(ctx)),
      };
      const { params, end } = await chain.ask(ctx, beforeTool, call, ctx.turn);
      if (end?.action === "deny_tool") return refused(ctx, end.reason);
      const given = end?.result ?? end?.call?.hook_result;
      note(ctx, given !== undefined);
      if (given) return responded(ctx, call, given);
      if (end) {
        warn(ctx, {
          hook: end.by,
          point: "tool",
          problem: "responded without a result: the call runs unchanged",
        });
      }
      const changed = end ? call : params;
      return await reviewed(ctx, changed, await next(changeOf(call, changed)));
    },
    async execute(ctx, next) {
      const { took } = notes(ctx.run);
      if (!took.has(ctx.callId)) {
        const { tool: { name: Tool }, input: Arguments } = ctx;
        observers.notify("tool_exec_start", ctx, ctx.turn, () => ({ Tool, Arguments }));
      }
      const start = performance.now();
      try {
        return await next();
      } finally {
        took.set(ctx.callId, performance.now() - start);
      }
    },
  };
}

function approval({ chain, about, approveResponses }: Hooks): Pick<Middleware, "approval"> {
  return {
    async approval(ctx, next) {
      if (ctx.proposed && !approveResponses && answered.get(ctx).includes(ctx.call.id)) return await next();
      const reason = await chain.approve(ctx, {
        ...about(ctx, ctx.turn, "turn.tool.approve"),
        tool: ctx.name,
        arguments: objectOf(ctx.input),
      });
      if (reason === undefined) return await next();
      return deny(reasoned("Tool execution denied by approval hook", reason));
    },
  };
}

/** Records whether a hook has answered a call. The answer may differ from the one before a pause. */
function note(ctx: ToolContext, isAnswered: boolean): void {
  const { id } = ctx.call;
  if (answered.get(ctx).includes(id) === isAnswered) return;
  answered.update(ctx, (ids) => isAnswered ? [...ids, id] : ids.filter((each) => each !== id));
}

/** `before_tool`. */
const beforeTool: Link<BeforeTool, z.output<typeof beforeToolReply>> = {
  stage: "before_tool",
  mode: "tool",
  reply: beforeToolReply,
  change: (before, { call }) => call ? { ...before, tool: call.tool, arguments: call.arguments } : before,
  ends: ["respond", "deny_tool"],
};

/** `after_tool`. */
const afterTool: Link<AfterTool, z.output<typeof afterToolReply>> = {
  stage: "after_tool",
  mode: "tool",
  reply: afterToolReply,
  change(before, { result }) {
    return result
      ? { ...before, tool: result.tool, arguments: result.arguments, result: result.result ?? before.result }
      : before;
  },
};

function changeOf(before: BeforeTool, after: BeforeTool): ToolChange | undefined {
  const input = isSameJson(before.arguments, after.arguments) ? undefined : after.arguments;
  const name = before.tool === after.tool ? undefined : after.tool;
  return input === undefined && name === undefined
    ? undefined
    : { ...(input !== undefined && { input }), ...(name !== undefined && { name }) };
}

function reasoned(text: string, reason: string): string {
  return reason === "" ? text : `${text}: ${reason}`;
}

function endOf(Tool: string, { for_llm, for_user, is_error: IsError, async: Async }: WireResult, Duration: number) {
  return { Tool, Duration, ForLLMLen: lengthOf(for_llm), ForUserLen: lengthOf(for_user), IsError, Async };
}
