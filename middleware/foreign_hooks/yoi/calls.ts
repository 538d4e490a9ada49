/**
 * The `tool` point: `pre_tool_call` and `post_tool_call`.
 *
 * @module
 */
import { consult, type ToolCall, type ToolCallContext, type ToolResult, type YoiHook } from "./hooks.ts";
import { errorOf, inputThatRuns, isSameJson, replaceText } from "../kit/calls.ts";
import {
  type AnyTool,
  type Call,
  callsOf,
  denied,
  type EndOptions,
  type Message,
  type ModelContext,
  type ModelResponse,
  noUsage,
  type Scope,
  skipped,
  type State,
  state,
  type ToolChange,
  type ToolContext,
  type ToolResult as OurResult,
} from "../../../mod.ts";

// Open calls: calls that hooks skip are answered for the provider, and submitted again by the next run.

/** A call that a hook has skipped. */
export interface OpenCall {
  /** Its id. It gets another one when it is submitted again. */
  readonly id: string;
  /** The tool. */
  readonly name: string;
  /** The original input. */
  readonly input: unknown;
}

interface Listed extends OpenCall {
  /** Whether this run submits it again. */
  readonly due: boolean;
}

const ofSession = state<readonly Listed[]>("yoi_hooks.open", () => [], { lifetime: "session" });
const ofRun = state<readonly Listed[]>("yoi_hooks.open", () => []);

/** Returns the list of a run. The list of a subagent ends with its run, because it has no session of its own. */
function listOf({ run }: Scope): State<readonly Listed[]> {
  return run.parent ? ofRun : ofSession;
}

/**
 * Returns the calls that hooks have skipped, in the order in which the next run submits them again.
 *
 * ```ts
 * import { agent, type Middleware, tool } from "@jizai/jizai";
 * import { openCalls, yoi_hooks } from "@jizai/jizai/middleware/yoi_hooks";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const seen: unknown[] = [];
 * const look: Middleware = {
 *   name: "look",
 *   async stop(ctx, next) {
 *     seen.push(...openCalls(ctx));
 *     return await next();
 *   },
 * };
 * const bash = tool({ name: "bash", description: "Runs", input: z.object({}), execute: () => "done" });
 * const model = scripted({ calls: [["bash", {}]] }, "Later, then.");
 *
 * await agent({ model, tools: [bash], use: [look, yoi_hooks({ pre_tool_call: () => "Skip" })] }).run("Go").result;
 * assertEquals(seen, [{ id: "call_1", name: "bash", input: {} }]);
 * ```
 */
export function openCalls(ctx: Scope): readonly OpenCall[] {
  return listOf(ctx).get(ctx).map(({ id, name, input }) => ({ id, name, input }));
}

/** Marks all open calls: this run submits them again. */
export function markDue(ctx: Scope): void {
  listOf(ctx).update(ctx, (openCalls) => openCalls.map((call) => ({ ...call, due: true })));
}

/** Adds a call to the list. */
function addOpen(ctx: Scope, { id, name, input }: Call): void {
  listOf(ctx).update(
    ctx,
    (openCalls) => [...openCalls.filter((call) => call.id !== id), { id, name, input, due: false }],
  );
}

/** Removes a call from the list: hooks decide about it again. */
function removeOpen(ctx: Scope, { id }: Call): void {
  if (isOpen(ctx, id)) listOf(ctx).update(ctx, (openCalls) => openCalls.filter((call) => call.id !== id));
}

/** Whether a call is open. */
export function isOpen(ctx: Scope, id: string): boolean {
  return listOf(ctx).get(ctx).some((call) => call.id === id);
}

/** Adds every call of the message that contains this one. */
function addOpenBatch(ctx: Scope, id: string, messages: readonly Message[]): void {
  const batches = messages.map((message) => message.role === "assistant" ? callsOf(message) : []);
  for (const call of batches.findLast((calls) => calls.some((call) => call.id === id)) ?? []) addOpen(ctx, call);
}

/** Returns the calls that this run submits again, as a response with new call ids; undefined if there are none. */
export function dueResponse(ctx: ModelContext): ModelResponse | undefined {
  const openCalls = listOf(ctx).get(ctx);
  if (!openCalls.some(({ due }) => due)) return undefined;
  listOf(ctx).set(ctx, openCalls.filter(({ due }) => !due));
  const calls = openCalls.filter(({ due }) => due).map(({ name, input }): Call => ({
    id: `call_${crypto.randomUUID().replaceAll("-", "")}`,
    name,
    input,
  }));
  for (const call of calls) ctx.emit({ type: "call.ready", turn: ctx.turn, call });
  return {
    parts: calls.map((call) => ({ type: "call", ...call })),
    finish: "calls",
    usage: noUsage,
    model: "yoi_hooks",
    attempts: 0,
  };
}

// The `tool` point: `pre_tool_call` on the way in, and `post_tool_call` on the way out.

/** The call at which a hook aborted the run, and its batch. */
const aborted = state<{ readonly call: string; readonly batch: string } | undefined>(
  "yoi_hooks.aborted",
  () => undefined,
);

/** A call of a known tool. */
type Calling = ToolContext & { readonly tool: AnyTool };

/** A call that runs, with the changes of hooks. */
interface Made {
  readonly type: "made";
  readonly ctx: Calling;
  readonly call: ToolCall;
  readonly change: ToolChange;
}

/** Asks `pre_tool_call`. Returns the call, or a result in its place. */
export async function beforeCall(hooks: readonly YoiHook[], ctx: Calling): Promise<Made | OurResult> {
  const { call: { id }, name } = ctx;
  const input = await inputThatRuns(ctx);
  removeOpen(ctx, ctx.call);
  const before = { call: { id, name, input } };
  const { draft, answer, foreign } = await consult(hooks, "pre_tool_call", ctx, before, about(ctx));
  if (foreign) return denied(foreign.reason ?? "Denied by a hook."); // also a question, which yoi cannot ask
  if (answer?.[0] === "Abort") throw abort(ctx, answer[1]);
  if (answer?.[0] === "Pause") throw ctx.run.pause(`A hook paused the run before ${name}. Go on?`);
  if (answer?.[0] !== "Skip") {
    return { type: "made", ctx, call: draft.call, change: changeOf({ name, input }, draft.call) };
  }
  addOpen(ctx, ctx.call);
  return notNow;
}

/** Asks `post_tool_call`. Returns the result with the changes of hooks. */
export async function afterCall(
  hooks: readonly YoiHook[],
  { ctx, call }: Made,
  original: OurResult,
): Promise<OurResult> {
  if (original.status === "aborted") return original; // the call was cut short and has no result
  if (aborted.get(ctx)?.batch === ctx.batchId) return notNow; // an abort drops the results of the batch
  const result: ToolResult = {
    tool_use_id: call.id,
    content: errorOf(original),
    is_error: original.status !== "ok",
  };
  const { draft, answer } = await consult(hooks, "post_tool_call", ctx, { call, result }, about(ctx));
  if (answer?.[0] === "Abort") throw abort(ctx, answer[1], { withhold: true });
  const { content, is_error } = draft.result;
  return {
    ...original,
    ...(content !== result.content && { parts: replaceText(original.parts, content) }),
    ...(is_error !== result.is_error && { status: is_error ? "error" : "ok" }),
  };
}

/** Makes every call of an aborted batch an open call. */
export function reopenAborted(ctx: Scope, messages: readonly Message[]): void {
  const { call } = aborted.get(ctx) ?? {};
  if (call !== undefined) addOpenBatch(ctx, call, messages);
}

const notNow = skipped("Not run now: it is submitted again later.");

function abort(ctx: Calling, reason: string, options: Pick<EndOptions, "withhold"> = {}): Error {
  aborted.set(ctx, { call: ctx.call.id, batch: ctx.batchId });
  return ctx.run.end(reason, { as: "failed", ...options });
}

/** Returns the changes of hooks in a call. */
function changeOf(before: Pick<ToolCall, "name" | "input">, { name, input }: ToolCall): ToolChange {
  return {
    ...(name !== before.name && { name }),
    ...(!isSameJson(input, before.input) && { input }),
  };
}

function about({ tool, call: { id }, batchId, index }: Calling): Omit<ToolCallContext, "call"> {
  const { name, description, schema } = tool.definition;
  return {
    meta: { name, description, input_schema: schema },
    tool,
    context: { call_id: id, batch_id: batchId, call_index: index },
  };
}
