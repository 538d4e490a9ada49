/**
 * `onPreToolUse`: decides about each call of a response, in the model's order.
 *
 * @module
 */
import {
  type AnswerPart,
  type Call,
  type ModelContext,
  type ModelResponse,
  type Point,
  type Scope,
  state,
} from "../../../mod.ts";
import type { Handlers } from "./handlers.ts";

/** The decision of the hook about a call. */
export interface Decided {
  readonly decision?: "allow" | "deny" | "ask";
  readonly reason?: string;
  /** A text for the model, after the results. */
  readonly context?: string;
  /** Whether the result is withheld. */
  readonly withheld?: boolean;
  /** The turn of the decision: call ids may occur again in later turns. */
  readonly turn: number;
}

/** A decision, and the modified input. */
export interface DecidedCall {
  readonly decided: Decided;
  readonly args?: unknown;
}

/** The decisions by call id, until the calls have come out. They outlive a pause, so that no hook is asked twice about a call. */
const all = state<Record<string, Decided>>("copilot_hooks.decided", () => ({}));

/** Returns the decision about a call, if there is one. */
export function decidedOf(ctx: Scope, id: string): Decided | undefined {
  return all.get(ctx)[id];
}

/** Forgets a call that has come out. */
export function forget(ctx: Scope, id: string): void {
  delete all.get(ctx)[id];
}

/** The decisions that others may not weaken, the weaker one first. */
const strict: readonly Decided["decision"][] = ["ask", "deny"];

/** Asks about a call. A stricter decision of another middleware of this kind stays. */
export async function decide(
  handlers: Handlers,
  ctx: Scope & { readonly turn: number },
  point: Point,
  { id, name: toolName, input: toolArgs }: Call,
): Promise<DecidedCall> {
  const { turn } = ctx;
  if (!handlers.has("onPreToolUse")) return { decided: { turn } };
  const output = await handlers.ask("onPreToolUse", ctx, point, { toolName, toolArgs });
  const { permissionDecision: decision, permissionDecisionReason: reason, additionalContext: context } = output;
  const own: Decided = {
    ...(decision && { decision }),
    ...(reason !== undefined && { reason }),
    ...(context && { context }),
    ...(output.suppressOutput && { withheld: true }),
    turn,
  };
  const known = decidedOf(ctx, id);
  const before = known?.turn === turn ? known : undefined;
  const isStricter = before && strict.indexOf(before.decision) > strict.indexOf(decision);
  const decided: Decided = { ...(isStricter ? before : own), ...(before?.withheld && { withheld: true }) };
  all.get(ctx)[id] = decided;
  const args = decided.decision === "deny" ? undefined : output.modifiedArgs;
  return { decided, ...(args !== undefined && { args }) };
}

/** Returns the text for the model of a denied call. */
export function refusalOf({ reason }: Decided): string {
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
