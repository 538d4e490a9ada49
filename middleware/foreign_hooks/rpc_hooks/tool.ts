/**
 * Around a call: `before_tool`, `approve_tool` and `after_tool`.
 *
 * @module
 */
import {
  denied,
  deny,
  type Middleware,
  state,
  textOf,
  type ToolChange,
  type ToolContext,
  type ToolResult,
} from "../../../mod.ts";
import { canonicalJson } from "../../../src/core/kit.ts";
import type { AfterTool, BeforeTool } from "./about.ts";
import type { Link } from "./chain.ts";
import { type Hooks, lengthOf, nanoseconds } from "./hooks.ts";
import { type AfterToolReply, afterToolReply, type BeforeToolReply, beforeToolReply } from "./reply.ts";
import { fromWireResult, toWireResult, type WireResult } from "./result.ts";
import { isObject } from "./struct.ts";

/** The calls that hooks have answered, by their ids. */
const answered = state("rpc_hooks.answered", (): readonly string[] => []);

/** The hooks around a call, where there are any. */
export function tool(hooks: Hooks): Pick<Middleware, "tool" | "approval" | "execute"> {
  const { chain, observers } = hooks;
  const made = chain.has("tool") || observers.hear("tool_exec_start", "tool_exec_end", "tool_exec_skipped");
  return { ...(made && around(hooks)), ...(chain.has("approve") && before(hooks)) };
}

/** Around a call: what it is made with, and what it comes to. */
function around({ chain, observers, notes, about, warn }: Hooks): Pick<Middleware, "tool" | "execute"> {
  /** What a call comes to that a hook has answered. */
  function responded(ctx: ToolContext, { tool: Tool, arguments: Arguments }: BeforeTool, wire: WireResult): ToolResult {
    observers.tell("tool_exec_start", ctx, ctx.turn, () => ({ Tool, Arguments }));
    observers.tell("tool_exec_end", ctx, ctx.turn, () => ended(Tool, wire, 0));
    return fromWireResult(wire);
  }

  function refused(ctx: ToolContext, reason: string): ToolResult {
    const why = because("Tool execution denied by hook", reason);
    observers.tell("tool_exec_skipped", ctx, ctx.turn, () => ({ Tool: ctx.name, Reason: why }));
    return denied(why);
  }

  /** What comes out of a call that was made. */
  async function reviewed(ctx: ToolContext, call: BeforeTool, result: ToolResult): Promise<ToolResult> {
    const { status } = result;
    if (status === "denied" || status === "skipped") {
      observers.tell("tool_exec_skipped", ctx, ctx.turn, () => ({ Tool: call.tool, Reason: textOf(result) }));
    }
    if (["denied", "skipped", "aborted"].includes(status)) return result;
    const { took } = notes(ctx.run);
    const duration = nanoseconds(took.get(ctx.call.id) ?? 0);
    took.delete(ctx.call.id);
    const wire = toWireResult(result);
    const told: AfterTool = {
      ...about(ctx, ctx.turn, "turn.tool.after"),
      tool: call.tool,
      arguments: argumentsOf(result.input ?? call.arguments),
      result: wire,
      duration,
    };
    const { params } = await chain.ask(ctx, afterTool, told, ctx.turn);
    observers.tell("tool_exec_end", ctx, ctx.turn, () => ended(params.tool || call.tool, params.result, duration));
    return canonicalJson(params.result) === canonicalJson(wire) ? result : fromWireResult(params.result, result);
  }

  return {
    async tool(ctx, next) {
      const call: BeforeTool = {
        ...about(ctx, ctx.turn, "turn.tool.before"),
        tool: ctx.name,
        arguments: argumentsOf(ctx.input),
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
          why: "responded without a result, so that the call is made as it was",
        });
      }
      const made = end ? call : params;
      return await reviewed(ctx, made, await next(changeOf(call, made)));
    },
    async execute(ctx, next) {
      const { took } = notes(ctx.run);
      if (!took.has(ctx.callId)) {
        const { tool: { name: Tool }, input: Arguments } = ctx;
        observers.tell("tool_exec_start", ctx, ctx.turn, () => ({ Tool, Arguments }));
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

/** Before a call: may it be made? */
function before({ chain, about, approveResponses }: Hooks): Pick<Middleware, "approval"> {
  return {
    async approval(ctx, next) {
      if (ctx.proposed && !approveResponses && answered.get(ctx).includes(ctx.call.id)) return await next();
      const reason = await chain.approve(ctx, {
        ...about(ctx, ctx.turn, "turn.tool.approve"),
        tool: ctx.name,
        arguments: argumentsOf(ctx.input),
      });
      if (reason === undefined) return await next();
      return deny(because("Tool execution denied by approval hook", reason));
    },
  };
}

/** Notes whether a hook has answered a call: it may have, before the run paused, and not again. */
function note(ctx: ToolContext, isAnswered: boolean): void {
  const { id } = ctx.call;
  if (answered.get(ctx).includes(id) === isAnswered) return;
  answered.update(ctx, (ids) => isAnswered ? [...ids, id] : ids.filter((each) => each !== id));
}

/** `before_tool`. */
const beforeTool: Link<BeforeTool, BeforeToolReply> = {
  stage: "before_tool",
  mode: "tool",
  reply: beforeToolReply,
  change: (before, { call }) => call ? { ...before, tool: call.tool, arguments: call.arguments } : before,
  ends: ["respond", "deny_tool"],
};

/** `after_tool`. */
const afterTool: Link<AfterTool, AfterToolReply> = {
  stage: "after_tool",
  mode: "tool",
  reply: afterToolReply,
  change(before, { result }) {
    if (!result) return before;
    const { tool, arguments: given, result: wire = before.result } = result;
    return { ...before, tool, arguments: given, result: wire };
  },
};

function argumentsOf(input: unknown): Readonly<Record<string, unknown>> {
  return isObject(input) ? input : {};
}

function changeOf(before: BeforeTool, after: BeforeTool): ToolChange | undefined {
  const input = canonicalJson(before.arguments) === canonicalJson(after.arguments) ? undefined : after.arguments;
  const name = before.tool === after.tool ? undefined : after.tool;
  return input === undefined && name === undefined
    ? undefined
    : { ...(input !== undefined && { input }), ...(name !== undefined && { name }) };
}

function because(what: string, reason: string): string {
  return reason === "" ? what : `${what}: ${reason}`;
}

function ended(Tool: string, { for_llm, for_user, is_error: IsError, async: Async }: WireResult, Duration: number) {
  return { Tool, Duration, ForLLMLen: lengthOf(for_llm), ForUserLen: lengthOf(for_user), IsError, Async };
}
