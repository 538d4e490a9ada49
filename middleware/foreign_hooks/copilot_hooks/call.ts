/**
 * The points `tool`, `approval`, `execute` and `error`.
 *
 * @module
 */
import {
  abortRun,
  allow,
  ask,
  type Call,
  denied,
  deny,
  type ErrorContext,
  type Middleware,
  ModelError,
  skip,
  type ToolContext,
  type ToolResult,
  tryAgain,
} from "../../../mod.ts";
import { addContext, allowAsk, errorOf, inputThatRuns, isSameJson } from "../kit/call.ts";
import { messageOf } from "../kit/warn.ts";
import type { Fields, Handlers } from "./handlers.ts";
import type { ErrorOccurredHookInput } from "./session_hooks.ts";
import { type McpTool, runWithMeta } from "./mcp.ts";
import {
  decide,
  type Decided,
  decidedOf,
  decideOnEntry,
  forget,
  judgedBy,
  refusalOf,
  strictestOf,
} from "./pre_tool_use.ts";
import { modified, toHookResult, withheld } from "./result.ts";

/** Options of the hooks around a call. */
export interface CallOptions {
  /** Returns the MCP server of a tool. */
  readonly mcp: (toolName: string) => McpTool | undefined;
  /** Whether `suppressOutput` of `onPostToolUse` hides the result from the person only. */
  readonly document: boolean;
  /** Whether each call runs alone, so the hook is asked when a call enters, not after the response. */
  readonly groups: boolean;
}

/** Creates the hooks around a call. */
export function callHooks(
  handlers: Handlers,
  { mcp, document, groups }: CallOptions,
): Required<Pick<Middleware, "tool" | "approval" | "execute" | "error">> {
  /** The calls whose failure the person does not see. */
  const hidden = new WeakSet<Call>();
  /** The decisions about calls that have entered. */
  const decisions = new WeakMap<Call, Decided>();

  async function enter(ctx: ToolContext) {
    const { call: { id }, name, tool } = ctx;
    if (groups) return await decideOnEntry(handlers, ctx);
    const known = decidedOf(ctx, id);
    const input = await inputThatRuns(ctx);
    if (known && hasJudged(known, input)) return { decided: known };
    const before = known && judgedBy(handlers, known);
    const isChanged = before?.isChange && isSameJson(before.input, ctx.input); // only the schema has changed it since
    return await decide(handlers, ctx, "tool", { id, name, input, tool, isChanged });
  }

  /** Asks about a call that has succeeded or failed. */
  async function reviewed(ctx: ToolContext, toolArgs: unknown, result: ToolResult): Promise<ToolResult> {
    const { name: toolName, call } = ctx;
    if (result.status === "error") {
      const fields = { toolName, toolArgs, error: errorOf(result) };
      const { additionalContext } = await handlers.ask("onPostToolUseFailure", ctx, "tool", fields);
      const shown = hidden.has(call) ? { ...result, silent: true } : result;
      return addContext(shown, [additionalContext && guidanceOf(toolName, additionalContext)]);
    }
    if (result.status !== "ok" || !handlers.has("onPostToolUse")) return result;
    const fields = { toolName, toolArgs, toolResult: toHookResult(result) };
    const output = await handlers.ask("onPostToolUse", ctx, "tool", fields);
    const { modifiedResult, additionalContext, suppressOutput } = output;
    const after = modifiedResult === undefined ? result : modified(result, modifiedResult);
    const hide = () => document ? { ...after, silent: true } : withheld(after);
    return addContext(suppressOutput ? hide() : after, [additionalContext]);
  }

  /** True if the hook has decided about this input. Without a hook, there is nothing to decide. */
  function hasJudged(decided: Decided, input: unknown): boolean {
    return !handlers.has("onPreToolUse") || isSameJson(judgedBy(handlers, decided)?.input, input);
  }

  return {
    async tool(ctx, next) {
      const { call: { id }, input } = ctx;
      const { decided, args } = { args: undefined, ...await enter(ctx) };
      if (groups) decisions.set(ctx.call, decided);
      if (decided.decision === "deny") return addContext(denied(refusalOf(decided)), [decided.context]);
      if (groups && args !== undefined) {
        ctx.emit({ type: "call.ready", turn: ctx.turn, call: { id, name: ctx.call.name, input: args } }); // clients have the original call
      }
      const result = addContext(await next(args === undefined ? undefined : { input: args }), [decided.context]);
      forget(ctx, id);
      const ran = result.input ?? args ?? input;
      const after = await reviewed(ctx, ran, result);
      const kept = groups && args !== undefined ? { ...after, input: ran, rewritten: true } : after;
      return decided.withheld ? withheld(kept) : kept;
    },
    async approval(ctx, next) {
      const { call: { id }, name, input, tool } = ctx;
      const own = decisions.get(ctx.call) ?? decidedOf(ctx, id);
      const isKnown = own && hasJudged(own, input);
      const { decided: last, args } = isKnown
        ? { decided: own, args: undefined }
        : { args: undefined, ...await decide(handlers, ctx, "approval", { id, name, input, tool }) };
      decisions.set(ctx.call, last);
      const strictest = strictestOf(ctx, last);
      const { decision, reason } = strictest;
      if (decision !== "deny" && args !== undefined && !hasJudged(last, input)) return allow({ input: args });
      if (decision === "deny") return deny(refusalOf(strictest));
      if (decision === "ask") return ask(reason || `Run ${name}?`);
      const inner = await next();
      return decision === "allow" ? allowAsk(inner) : inner;
    },
    async execute(ctx, next) {
      const tool = handlers.has("onPreMcpToolCall") ? mcp(ctx.tool.name) : undefined;
      return tool ? await runWithMeta(handlers, ctx, tool, next) : await next();
    },
    async error(ctx, next) {
      const output = await handlers.ask("onErrorOccurred", ctx, "error", failureOf(ctx));
      const { errorHandling, retryCount = 1, userNotification, suppressOutput } = output;
      if (userNotification) ctx.emit({ type: "notice", text: userNotification });
      if (suppressOutput && ctx.call) hidden.add(ctx.call);
      const mayRetry = (ctx.source === "model" || ctx.source === "execute") && ctx.attempt <= retryCount;
      if (errorHandling === "retry" && mayRetry) return tryAgain({ after: waitFor(ctx.error) });
      if (errorHandling === "skip") return skip();
      return errorHandling === "abort" ? abortRun() : await next();
    },
  };
}

function guidanceOf(tool: string, text: string): string {
  return `Tool "${tool}" failed. Additional guidance from postToolUseFailure hooks:\n${text}`;
}

const contexts: Readonly<Partial<Record<ErrorContext["source"], ErrorOccurredHookInput["errorContext"]>>> = {
  model: "model_call",
  tool: "tool_execution",
  approval: "tool_execution",
  execute: "tool_execution",
  prompt: "user_input",
};

function failureOf({ error, source, recoverable }: ErrorContext): Fields<"onErrorOccurred"> {
  return { error: messageOf(error), errorContext: contexts[source] ?? "system", recoverable };
}

/** Returns the milliseconds that the provider asks to wait. */
function waitFor(error: unknown): number {
  return error instanceof ModelError ? error.retryAfter ?? 0 : 0;
}
