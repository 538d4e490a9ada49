/**
 * Calls that are put off: answered for the provider, and made again by the next run.
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

/** A call that is put off. */
export interface OpenCall {
  /** Its id. It has another one when it is made again. */
  readonly id: string;
  /** The tool. */
  readonly name: string;
  /** The input, as the model wrote it. */
  readonly input: unknown;
}

interface Listed extends OpenCall {
  /** Whether this run is to make it again. */
  readonly due: boolean;
}

const ofSession = state<readonly Listed[]>("yoi_hooks.open", () => [], { lifetime: "session" });
const ofRun = state<readonly Listed[]>("yoi_hooks.open", () => []);

/** Where the calls of a run are listed: an agent that is a tool has no session that outlives its run. */
function listOf({ run }: Scope): State<readonly Listed[]> {
  return run.parent ? ofRun : ofSession;
}

/**
 * The calls that hooks have put off, in the order in which the next run makes them again.
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

/** Has the run that begins, or goes on, make them again. */
export function makeDue(ctx: Scope): void {
  listOf(ctx).update(ctx, (open) => open.map((call) => ({ ...call, due: true })));
}

/** Puts a call off. */
export function putOff(ctx: Scope, { id, name, input }: Call): void {
  listOf(ctx).update(ctx, (open) => [...open.filter((call) => call.id !== id), { id, name, input, due: false }]);
}

/** Forgets that a call was put off: it is decided about anew. */
export function takeUp(ctx: Scope, { id }: Call): void {
  if (isOpen(ctx, id)) listOf(ctx).update(ctx, (open) => open.filter((call) => call.id !== id));
}

/** Whether a call is put off. */
export function isOpen(ctx: Scope, id: string): boolean {
  return listOf(ctx).get(ctx).some((call) => call.id === id);
}

/** Puts off every call of the message that has this one. */
export function putOffBatch(ctx: Scope, id: string, messages: readonly Message[]): void {
  const batches = messages.map((message) => message.role === "assistant" ? callsOf(message) : []);
  for (const call of batches.findLast((calls) => calls.some((call) => call.id === id)) ?? []) putOff(ctx, call);
}

/** The calls that this run is to make again, as a response of the model with calls of new ids; nothing where there are none. */
export function madeAgain(ctx: ModelContext): ModelResponse | undefined {
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
