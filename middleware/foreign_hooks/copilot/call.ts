/**
 * The points `tool`, `approval`, `execute` and `error`.
 *
 * @module
 */
import type { ErrorOccurredHookInput } from "./hooks.ts";
import { type Fields, type Handlers, modified, toHookResult, withheld } from "./outputs.ts";
import { addContext, allowAsk, CallDecisions, errorOf, inputThatRuns, isSameJson, messageOf } from "../kit/calls.ts";
import {
  abortRun,
  allow,
  type AnswerPart,
  type ApprovalContext,
  ask,
  type Call,
  denied,
  deny,
  type ErrorContext,
  type ExecuteContext,
  type Middleware,
  type ModelContext,
  ModelError,
  type ModelResponse,
  type Point,
  type Scope,
  skip,
  state,
  type ToolContext,
  type ToolExecutionContext,
  type ToolResult,
  tryAgain,
} from "../../../mod.ts";
import { isObject } from "../../../src/core/kit.ts";

// `onPreMcpToolCall`: sets the metadata of requests to MCP servers.

/** A tool of an MCP server. */
export interface McpTool {
  /** The server. */
  readonly serverName: string;
  /** The name of the tool on the server. */
  readonly toolName: string;
}

/** The metadata of running calls, by call id. */
const metas = state<Record<string, Record<string, unknown> | null>>("mcp.meta", () => ({}));

/**
 * Returns the `_meta` that `onPreMcpToolCall` has set for a call, for a tool that passes its calls to an MCP server. Null means that none is sent, undefined
 * that the hook has not decided.
 *
 * ```ts
 * import { agent, tool } from "@jizai/jizai";
 * import { copilot_hooks, metaOf } from "@jizai/jizai/middleware/copilot_hooks";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const search = tool({
 *   name: "mcp__docs__search",
 *   description: "Searches the documents",
 *   input: z.object({ query: z.string() }),
 *   execute: ({ query }, ctx) => `${query} for ${metaOf(ctx)?.tenant}`,
 * });
 * const hooks = copilot_hooks({ onPreMcpToolCall: ({ serverName }) => ({ metaToUse: { tenant: `${serverName}-1` } }) });
 * const model = scripted({ calls: [["mcp__docs__search", { query: "fire" }]] }, "Done.");
 *
 * await agent({ model, tools: [search], use: [hooks] }).run("Look it up").result;
 * const result = model.requests[1]?.messages.at(-1);
 * assertEquals(result?.role === "tool" && result.results[0]?.parts, [{ type: "text", text: "fire for docs-1" }]);
 * ```
 */
export function metaOf(ctx: ToolExecutionContext): Record<string, unknown> | null | undefined {
  return metas.get(ctx)[ctx.callId];
}

/** Runs a call of an MCP tool with the metadata that the hook sets. */
async function runWithMeta(
  handlers: Handlers,
  ctx: ExecuteContext,
  tool: McpTool,
  next: () => Promise<ToolResult>,
): Promise<ToolResult> {
  const { callId, input } = ctx;
  const fields = { toolCallId: callId, ...tool, arguments: input };
  const { metaToUse, foreign } = await handlers.ask("onPreMcpToolCall", ctx, "execute", fields);
  if (foreign) return denied(`Denied by preMcpToolCall hook: ${foreign.reason || "No reason provided"}`); // no person can be asked any more
  if (metaToUse === undefined) return await next();
  metas.get(ctx)[callId] = metaToUse;
  try {
    return await next();
  } finally {
    delete metas.get(ctx)[callId];
  }
}

// `onPreToolUse`: decides about each call of a response, in the model's order.

/** The decision of the hook about a call. Plain JSON: it is saved over a pause. */
interface Decided {
  readonly decision?: "allow" | "deny" | "ask" | undefined;
  readonly reason?: string | undefined;
  /** A text for the model, after the results. */
  readonly context?: string | undefined;
  /** Whether the result is withheld. */
  readonly withheld?: boolean | undefined;
  /** The input that replaces that of the call. Default: the hook changes nothing. */
  readonly args?: unknown;
  /** The input that the hook has decided about, after its change. */
  readonly input: unknown;
  /** Whether the hook has changed that input. Default: false. */
  readonly isChange?: boolean;
}

/** The decisions of all middleware of this kind about calls. */
type Decisions = CallDecisions<Decided>;

/** Creates the decisions. */
export function decisionsOf(): Decisions {
  return new CallDecisions("copilot_hooks.entered", "");
}

/** The decisions that others may not weaken, the weaker one first. */
const strict: readonly Decided["decision"][] = ["ask", "deny"];

/** Asks the hook about a call. It does not change an input twice that it has changed `before`. */
async function decide(
  handlers: Handlers,
  ctx: Scope,
  point: Point,
  { name: toolName, input: toolArgs, tool }: Pick<ToolContext, "name" | "input" | "tool">,
  before?: Decided,
): Promise<Decided> {
  const output = await handlers.ask("onPreToolUse", ctx, point, { toolName, toolArgs });
  const { additionalContext: context, suppressOutput: withheld, foreign } = output;
  const isOverridden = foreign !== undefined && output.permissionDecision !== "deny";
  const { type: decision, reason } = isOverridden
    ? foreign
    : { type: output.permissionDecision, reason: output.permissionDecisionReason };
  const args = decision === "deny" || before?.isChange ? undefined : output.modifiedArgs;
  const made = { decision, reason, context, withheld };
  if (args === undefined) return { ...made, input: toolArgs };
  return { ...made, args, input: await inputThatRuns({ tool, input: args }), isChange: true };
}

/** Returns the strictest of several decisions about a call. `ownDecision` wins among equals. */
function strictestOf(ownDecision: Decided, others: readonly Decided[]): Decided {
  const rank = ({ decision }: Decided) => strict.indexOf(decision);
  return others.reduce((found, each) => rank(each) > rank(found) ? each : found, ownDecision);
}

/** Joins a decision with earlier ones about the same call: the strictest counts, for the newest input. */
function joined(decision: Decided, earlier: readonly Decided[]): Decided {
  const { args, input, isChange = false } = decision;
  return {
    ...strictestOf(decision, earlier),
    args,
    input,
    isChange,
    withheld: [decision, ...earlier].some((each) => each.withheld),
  };
}

/** Returns the text for the model of a denied call. */
function refusalOf(reason: string | undefined): string {
  return `Denied by preToolUse hook: ${reason || "No reason provided"}`;
}

/** Asks about each call of a response. Modified inputs replace the originals in the response. */
export async function reviewCalls(
  handlers: Handlers,
  decisions: Decisions,
  ctx: ModelContext,
  response: ModelResponse,
): Promise<ModelResponse> {
  async function review(part: Extract<AnswerPart, Call>): Promise<AnswerPart> {
    const { id, name, input } = part;
    const at = { ...ctx, call: part };
    const { args, ...made } = await decide(handlers, ctx, "model", { name, input, tool: undefined });
    const isDenied = strictestOf(made, decisions.all(at)).decision === "deny";
    decisions.add(at, made);
    if (args === undefined || isDenied) return part;
    const call: Call = { id, name, input: args };
    ctx.emit({ type: "call.ready", turn: ctx.turn, call }); // clients have received the original call
    return { type: "call", ...call };
  }

  const parts: AnswerPart[] = [];
  for (const part of response.parts) parts.push(part.type === "call" ? await review(part) : part);
  return parts.every((part, index) => part === response.parts[index]) ? response : { ...response, parts };
}

// The hooks at `tool`, `approval`, `execute` and `error`, which apply the decisions and report the outcome.

/** Options of the hooks around a call. */
interface CallOptions {
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
  decisions: Decisions,
  { mcp, document, groups }: CallOptions,
): Required<Pick<Middleware, "tool" | "approval" | "execute" | "error">> {
  /** The calls whose failure the person does not see. */
  const hidden = new WeakSet<Call>();
  const hasHook = handlers.has("onPreToolUse");

  /** Returns the decision about a call that enters. In groups, the hook is asked here, and once; otherwise again if another input runs than after the response. */
  async function enter(ctx: ToolContext): Promise<Decided> {
    if (!hasHook) return { input: ctx.input };
    const input = await inputThatRuns(ctx);
    const isJudged = (made: Decided) => groups || isSameJson(made.input, input);
    const decision = await decisions.enter(ctx, async (before) => {
      const isOwnChange = before && isSameJson(before.input, ctx.input); // only the schema has changed it since
      const made = await decide(handlers, ctx, "tool", { ...ctx, input }, isOwnChange ? before : undefined);
      return joined(made, before ? [before] : []);
    }, isJudged);
    return groups ? decision : joined(decision, decisions.all(ctx));
  }

  /** Asks before the guards decide about a call. Throws the end of the run if a denial interrupts it. An allow does not leave a sandbox. */
  async function permissionOf(
    ctx: ApprovalContext,
  ): Promise<{ readonly denied?: string; readonly isAllowed?: boolean }> {
    if (!handlers.has("onPermissionRequest")) return {};
    const fields = { toolName: ctx.name, toolInput: ctx.input };
    const output = await handlers.ask("onPermissionRequest", ctx, "approval", fields);
    const { behavior, message, interrupt, foreign } = output;
    if (foreign?.type === "deny" || behavior === "deny") {
      const reason = message ?? foreign?.reason ?? "Permission denied by hook.";
      if (interrupt) throw ctx.run.end(reason, { tree: true });
      return { denied: reason };
    }
    const leavesSandbox = isObject(ctx.input) && ctx.input.requestSandboxBypass === true;
    return { isAllowed: behavior === "allow" && foreign === undefined && !leavesSandbox };
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

  return {
    async tool(ctx, next) {
      const { call: { id }, input } = ctx;
      const { args, ...decided } = await enter(ctx);
      if (decided.decision === "deny") return addContext(denied(refusalOf(decided.reason)), [decided.context]);
      if (groups && args !== undefined) {
        ctx.emit({ type: "call.ready", turn: ctx.turn, call: { id, name: ctx.call.name, input: args } }); // clients have the original call
      }
      const result = addContext(await next(args === undefined ? undefined : { input: args }), [decided.context]);
      decisions.leave(ctx);
      const ran = result.input ?? args ?? input;
      const after = await reviewed(ctx, ran, result);
      const kept = groups && args !== undefined ? { ...after, input: ran, rewritten: true } : after;
      return decided.withheld ? withheld(kept) : kept;
    },
    async approval(ctx, next) {
      const { call, name, input } = ctx;
      const requested = await permissionOf(ctx);
      if (requested.denied !== undefined) return deny(requested.denied);
      if (!hasHook) return requested.isAllowed ? allowAsk(await next()) : await next();
      const before = decisions.of(call);
      const isJudged = before && isSameJson(before.input, input);
      const ownDecision = isJudged
        ? before
        : joined(await decide(handlers, ctx, "approval", ctx), before ? [before] : []);
      decisions.set(call, ownDecision);
      const { decision, reason } = strictestOf(ownDecision, decisions.all(ctx));
      if (decision !== "deny" && ownDecision.args !== undefined && !isSameJson(ownDecision.input, input)) {
        return allow({ input: ownDecision.args });
      }
      if (decision === "deny") return deny(refusalOf(reason));
      if (decision === "ask" && !requested.isAllowed) return ask(reason || `Run ${name}?`);
      const inner = await next();
      return decision === "allow" || requested.isAllowed ? allowAsk(inner) : inner;
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
      const mayRetry = (ctx.source === "model" || ctx.source === "execute" && ctx.recoverable) &&
        ctx.attempt <= retryCount;
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
