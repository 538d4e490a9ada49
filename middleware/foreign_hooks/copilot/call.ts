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

/** The decision of the hook about a call. */
interface Decided {
  readonly decision?: "allow" | "deny" | "ask";
  readonly reason?: string;
  /** A text for the model, after the results. */
  readonly context?: string;
  /** Whether the result is withheld. */
  readonly withheld?: boolean;
  /** The inputs that the hooks have decided about last, by their owner. Default: none has decided. */
  readonly judged?: Readonly<Record<string, Judged>>;
  /** The turn of the decision: call ids may occur again in later turns. */
  readonly turn: number;
}

/** The input that a hook has decided about, after its change. */
interface Judged {
  readonly input: unknown;
  /** True if the hook has changed the input. Default: false. */
  readonly isChange?: boolean;
}

/** Returns the input that the hook of an owner has decided about. After a pause, another process has other owners: there, the only one counts. */
function judgedBy({ owner }: Handlers, { judged = {} }: Decided): Judged | undefined {
  const all = Object.values(judged);
  return judged[owner] ?? (all.length === 1 ? all[0] : undefined);
}

/** A decision, and the modified input. */
interface DecidedCall {
  readonly decided: Decided;
  readonly args?: unknown;
}

/** A call to decide. */
interface Undecided extends Pick<Call, "id" | "name" | "input"> {
  /** The tool, once it is known. */
  readonly tool?: ToolContext["tool"];
  /** True if the hook has changed this input before, so that it does not change it twice. Default: false. */
  readonly isChanged?: boolean | undefined;
}

/** The decisions by call id, until the calls have left their hooks. They outlive a pause, so that no hook is asked twice about a call. */
const all = state<Record<string, Decided>>("copilot_hooks.decided", () => ({}));

/** Returns the decision about a call, if there is one. */
function decidedOf(ctx: Scope, id: string): Decided | undefined {
  return all.get(ctx)[id];
}

/** The decisions that others may not weaken, the weaker one first. */
const strict: readonly Decided["decision"][] = ["ask", "deny"];

/** Asks about a call. A stricter decision of another middleware of this kind stays. */
async function decide(
  handlers: Handlers,
  ctx: Scope & { readonly turn: number },
  point: Point,
  call: Undecided,
): Promise<DecidedCall> {
  const { id } = call;
  const { turn } = ctx;
  if (!handlers.has("onPreToolUse")) return { decided: { turn } };
  const { decided: own, args } = await askAbout(handlers, ctx, point, call);
  const known = decidedOf(ctx, id);
  const before = known?.turn === turn ? known : undefined;
  const isStricter = before && strict.indexOf(before.decision) > strict.indexOf(own.decision);
  const judged = { ...known?.judged, ...own.judged };
  const decided: Decided = { ...(isStricter ? before : own), ...(before?.withheld && { withheld: true }), judged };
  all.get(ctx)[id] = decided;
  return { decided, ...(decided.decision !== "deny" && args !== undefined && { args }) };
}

/** Asks the hook about a call. */
async function askAbout(
  handlers: Handlers,
  ctx: Scope & { readonly turn: number },
  point: Point,
  { name: toolName, input: toolArgs, tool, isChanged }: Undecided,
): Promise<DecidedCall> {
  const output = await handlers.ask("onPreToolUse", ctx, point, { toolName, toolArgs });
  const { additionalContext: context, foreign } = output;
  const isOverridden = foreign !== undefined && output.permissionDecision !== "deny";
  const decision = isOverridden ? foreign.type : output.permissionDecision;
  const reason = isOverridden ? foreign.reason : output.permissionDecisionReason;
  const args = decision === "deny" || isChanged ? undefined : output.modifiedArgs;
  const decided: Decided = {
    ...(decision && { decision }),
    ...(reason !== undefined && { reason }),
    ...(context && { context }),
    ...(output.suppressOutput && { withheld: true }),
    judged: {
      [handlers.owner]: args === undefined
        ? { input: toolArgs }
        : { input: await inputThatRuns({ tool, input: args }), isChange: true },
    },
    turn: ctx.turn,
  };
  return { decided, ...(args !== undefined && { args }) };
}

/** Returns the strictest of several decisions about a call. `own` wins among equals. */
function strictestOf(own: Decided, others: readonly DecidedCall[]): Decided {
  const rank = ({ decision }: Decided) => strict.indexOf(decision);
  return others.reduce((found, { decided }) => rank(decided) > rank(found) ? decided : found, own);
}

/** Returns the text for the model of a denied call. */
function refusalOf({ reason }: Decided): string {
  return `Denied by preToolUse hook: ${reason || "No reason provided"}`;
}

/** Asks about each call of a response. Modified inputs replace the originals in the response. */
export async function reviewCalls(
  handlers: Handlers,
  ctx: ModelContext,
  response: ModelResponse,
): Promise<ModelResponse> {
  const parts: AnswerPart[] = [];
  for (const part of response.parts) parts.push(part.type === "call" ? await review(handlers, ctx, part) : part);
  return parts.every((part, index) => part === response.parts[index]) ? response : { ...response, parts };
}

async function review(handlers: Handlers, ctx: ModelContext, part: Extract<AnswerPart, Call>): Promise<AnswerPart> {
  const { args } = await decide(handlers, ctx, "model", part);
  if (args === undefined) return part;
  const call: Call = { id: part.id, name: part.name, input: args };
  ctx.emit({ type: "call.ready", turn: ctx.turn, call }); // clients have received the original call
  return { type: "call", ...call };
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
  { mcp, document, groups }: CallOptions,
): Required<Pick<Middleware, "tool" | "approval" | "execute" | "error">> {
  /** The calls whose failure the person does not see. */
  const hidden = new WeakSet<Call>();
  /** The decisions about calls that have entered. */
  const decisions = new CallDecisions<DecidedCall>("copilot_hooks.entered", "");

  async function enter(ctx: ToolContext): Promise<DecidedCall> {
    const { call: { id }, name, tool } = ctx;
    if (groups) {
      if (!handlers.has("onPreToolUse")) return { decided: { turn: ctx.turn } };
      const ask = async () => askAbout(handlers, ctx, "tool", { id, name, tool, input: await inputThatRuns(ctx) });
      return await decisions.enter(ctx, ask, () => true);
    }
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
      const { decided, args } = await enter(ctx);
      if (decided.decision === "deny") return addContext(denied(refusalOf(decided)), [decided.context]);
      if (groups && args !== undefined) {
        ctx.emit({ type: "call.ready", turn: ctx.turn, call: { id, name: ctx.call.name, input: args } }); // clients have the original call
      }
      const result = addContext(await next(args === undefined ? undefined : { input: args }), [decided.context]);
      delete all.get(ctx)[id];
      decisions.leave(ctx);
      const ran = result.input ?? args ?? input;
      const after = await reviewed(ctx, ran, result);
      const kept = groups && args !== undefined ? { ...after, input: ran, rewritten: true } : after;
      return decided.withheld ? withheld(kept) : kept;
    },
    async approval(ctx, next) {
      const { call: { id }, name, input, tool } = ctx;
      const own = decisions.of(ctx.call)?.decided ?? decidedOf(ctx, id);
      const made: DecidedCall = own && hasJudged(own, input)
        ? { decided: own }
        : await decide(handlers, ctx, "approval", { id, name, input, tool });
      const { decided: last, args } = made;
      decisions.set(ctx.call, made);
      const strictest = strictestOf(last, decisions.all(ctx));
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
