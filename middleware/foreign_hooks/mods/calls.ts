/**
 * The points of a call: `tool.call` around it, and `tool.check` for the decision about it.
 *
 * @module
 */
import type { Data } from "./patterns.ts";
import { type At, type ModRun, type ModRuns, name } from "./run.ts";
import { appendedText, appends, loopOf } from "./session_view.ts";
import { parseJson } from "../kit/answers.ts";
import { addContext, allowAsk, inputThatRuns, isSameJson, replaceText, textPart } from "../kit/calls.ts";
import { warnFailed } from "../kit/adapter.ts";
import {
  type Approval,
  type ApprovalContext,
  ask,
  type Call,
  denied,
  deny,
  failed,
  type Middleware,
  type Next,
  text,
  textOf,
  type ToolChange,
  type ToolContext,
  type ToolResult,
} from "../../../mod.ts";
import { anySignal, isObject, jsonThatRuns } from "../../../src/core/kit.ts";

/** The fields beside the arguments of a call. Arguments of these names are hidden from mods. */
const reserved = ["tool", "tool_use_id", "agentId", "consent"];

/** Splits the fields of an object by whether their names are reserved. */
function split(fields: object): readonly [Data, Data] {
  const entries = Object.entries(fields);
  const part = (isReserved: boolean) =>
    Object.fromEntries(entries.filter(([key]) => reserved.includes(key) === isReserved));
  return [part(false), part(true)];
}

// Results: a result that a mod returns unchanged stays as the tool returned it.

/** Returns a result as mods see it. */
function seenResult(result: ToolResult): Data {
  const content = textOf(result);
  if (result.status === "denied") return { deny: content };
  const value = /^\s*[[{]/.test(content) ? parseJson(content) ?? content : content;
  return { ref: 1, result: value, text: content, ...(result.status !== "ok" && { isError: true }) };
}

/** Returns the result that an answer stands for. `ref` counts only if nothing beside it has changed: no text of the tool follows a changed result. */
function resultOf(answer: Data, seen: Data | undefined, toolResult: ToolResult | undefined): ToolResult {
  if (answer.deny !== undefined) {
    return toolResult?.status === "denied" && seen?.deny === answer.deny ? toolResult : denied(String(answer.deny));
  }
  const isSame = (field: string) => isSameJson(answer[field], seen?.[field]);
  const isOwn = toolResult && seen?.deny === undefined && isSame("result") && isSame("text") && isSame("isError");
  return addContext(isOwn ? toolResult : madeFrom(answer, isSame), contextOf(answer));
}

function madeFrom(answer: Data, isSame: (field: string) => boolean): ToolResult {
  const hasOwnText = typeof answer.text === "string" && !isSame("text");
  const content = isSame("result") && hasOwnText
    ? answer.text
    : answer.result === undefined
    ? answer.text ?? ""
    : answer.result;
  const shown = typeof content === "string" ? content : JSON.stringify(content);
  return answer.isError === true ? failed(shown) : text([textPart(shown)]);
}

function contextOf({ context }: Data): readonly string[] {
  return Array.isArray(context) ? context.map(String) : [];
}

// The hooks.

/** The calls that a mod answered in place of the tool. */
type Answered = WeakSet<Call>;

/** Whether mods have hooks around calls. */
export function hasCallHooks(run: ModRun): boolean {
  return appends(run) || run.has(
    "tool.call",
    "classic.PreToolUse",
    "classic.PostToolUse",
    "classic.PostToolUseFailure",
  );
}

/** Creates the hooks at `tool` and `approval`. */
export function callHooks(runs: ModRuns): Pick<Middleware, "tool" | "approval"> {
  const answered: Answered = new WeakSet();
  return {
    async tool(ctx, next) {
      const run = await runs.of(ctx);
      if (!hasCallHooks(run) || !ctx.tool || !await jsonThatRuns(ctx)) return await next();
      return await callTool(run, ctx, next, answered);
    },
    async approval(ctx, next) {
      const run = await runs.of(ctx);
      const guarded = await next();
      const inner = run.options.classic?.approve(ctx, guarded) ?? guarded;
      const isAnswer = ctx.proposed && answered.has(ctx.call);
      if (isAnswer && run.options.answersAreApproved) return allowAsk(inner);
      return run.has("tool.check") ? await check(run, ctx, inner) : inner;
    },
  };
}

async function callTool(
  run: ModRun,
  ctx: ToolContext,
  next: Next<ToolChange, ToolResult>,
  answered: Answered,
): Promise<ToolResult> {
  const at: At = { ctx, point: "tool" };
  const { call: { id: tool_use_id }, name: tool } = ctx;
  const input = await inputThatRuns(ctx);
  const [args, hidden] = isObject(input) ? split(input) : [{}, {}];
  let inner: Promise<ToolResult> | undefined;
  let toolResult: ToolResult | undefined;
  let isExecuted = false;
  const { classic } = run.options;
  let seen: Data | undefined;

  async function execute(e: Data, signal: AbortSignal): Promise<ToolResult> {
    const [changed] = split(e);
    isExecuted = true;
    const change = isObject(input) && !isSameJson(changed, args) ? { input: { ...hidden, ...changed } } : {};
    const result = await next({ ...change, signal: anySignal([ctx.signal, signal]) });
    return await appendedResult(run, at, tool_use_id, result);
  }

  async function core(e: Data, signal: AbortSignal): Promise<Data> {
    if (inner) throw new TypeError(`Cannot run the call of ${tool} again: retry at execute`);
    inner = classic ? classic.call(run, ctx, e, (e) => execute(e, signal)) : execute(e, signal);
    toolResult = await inner;
    return seen = seenResult(toolResult);
  }

  try {
    const answer = await run.raise("tool.call", { ...args, tool, tool_use_id, ...loopOf(ctx.run) }, core, at);
    await inner;
    if (!isExecuted) answered.add(ctx.call);
    return resultOf(answer, seen, toolResult);
  } catch (error) {
    const result = await inner; // throws what ends or pauses the run
    if (result && ctx.signal.aborted) return result;
    throw error;
  }
}

/** Returns the result as `session.append` leaves it, beneath all hooks of `tool.call`. */
async function appendedResult(run: ModRun, at: At, tool_use_id: string, result: ToolResult): Promise<ToolResult> {
  const content = textOf(result);
  const block = { type: "tool_result", tool_use_id, content, ...(result.status !== "ok" && { is_error: true }) };
  const message = { type: "user", role: "user", content: [block] };
  const [changed = content] = await appendedText(run, at, "tool-result", message);
  return changed === content ? result : { ...result, parts: replaceText(result.parts, changed) };
}

/** Asks the mods about a call. The inner guards and the tool are asked before: a deny of theirs is final. */
async function check(run: ModRun, ctx: ApprovalContext, inner: Approval): Promise<Approval> {
  const { name: tool, input, call: { id: tool_use_id } } = ctx;
  const verdict = verdictOf(inner);
  const answer = await run.raise(
    "tool.check",
    { tool, input, tool_use_id },
    () => Promise.resolve(verdict),
    { ctx, point: "approval" },
  );
  const reason = typeof answer.reason === "string" ? answer.reason : undefined;
  if (answer.decision === verdict.decision && (reason ?? verdict.reason) === verdict.reason) return inner;
  if (inner.type === "deny") {
    if (answer.decision !== "deny") {
      const message = `A mod allowed a call of ${tool} that another guard has denied: the deny is final.`;
      warnFailed(ctx, { middleware: name, point: "approval", message });
    }
    return inner;
  }
  if (answer.decision === "deny") return deny(reason ?? "A mod denied it.");
  if (answer.decision === "allow") return allowAsk(inner);
  const question = reason ?? verdict.reason ?? `Run ${tool}?`;
  return inner.type === "ask" && inner.questions.includes(question) ? inner : ask(question);
}

/** The decision about a call, as mods see it. */
interface Verdict extends Data {
  readonly decision: Approval["type"];
  readonly reason?: string;
}

function verdictOf(inner: Approval): Verdict {
  if (inner.type === "deny") return { decision: "deny", reason: inner.reason };
  return inner.type === "ask" ? { decision: "ask", reason: inner.questions.join("\n") } : { decision: "allow" };
}
