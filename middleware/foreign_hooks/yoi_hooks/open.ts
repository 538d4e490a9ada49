/**
 * Open calls: calls that hooks skip are answered for the provider, and submitted again by the next run.
 *
 * @module
 */
import {
  type Call,
  callsOf,
  type Message,
  type ModelContext,
  type ModelResponse,
  noUsage,
  type Scope,
  type State,
  state,
} from "../../../mod.ts";

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
  listOf(ctx).update(ctx, (open) => open.map((call) => ({ ...call, due: true })));
}

/** Adds a call to the list. */
export function addOpen(ctx: Scope, { id, name, input }: Call): void {
  listOf(ctx).update(ctx, (open) => [...open.filter((call) => call.id !== id), { id, name, input, due: false }]);
}

/** Removes a call from the list: hooks decide about it again. */
export function removeOpen(ctx: Scope, { id }: Call): void {
  if (isOpen(ctx, id)) listOf(ctx).update(ctx, (open) => open.filter((call) => call.id !== id));
}

/** Whether a call is open. */
export function isOpen(ctx: Scope, id: string): boolean {
  return listOf(ctx).get(ctx).some((call) => call.id === id);
}

/** Adds every call of the message that contains this one. */
export function addOpenBatch(ctx: Scope, id: string, messages: readonly Message[]): void {
  const batches = messages.map((message) => message.role === "assistant" ? callsOf(message) : []);
  for (const call of batches.findLast((calls) => calls.some((call) => call.id === id)) ?? []) addOpen(ctx, call);
}

/** Returns the calls that this run submits again, as a response with new call ids; undefined if there are none. */
export function dueResponse(ctx: ModelContext): ModelResponse | undefined {
  const open = listOf(ctx).get(ctx);
  if (!open.some(({ due }) => due)) return undefined;
  listOf(ctx).set(ctx, open.filter(({ due }) => !due));
  const calls = open.filter(({ due }) => due).map(({ name, input }): Call => ({
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
