/**
 * What is decided about a call before it is made.
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

/** What a hook decided about a call. */
export interface Decided {
  /** Whether it is made; nothing leaves that to others. */
  readonly decision?: "allow" | "deny" | "ask";
  /** Why. */
  readonly reason?: string;
  /** For the model, after the results. */
  readonly context?: string;
  /** Whether the model is not told its result. */
  readonly withheld?: boolean;
  /** The turn in which it was decided: a later one may have a call of the same id. */
  readonly turn: number;
}

/** What a hook decided, and the input that it modified. */
export interface Asked {
  /** What it decided. */
  readonly decided: Decided;
  /** The input; nothing where it stays. */
  readonly args?: unknown;
}

/** By the ids of calls, until they come out. It outlives a pause, so that no hook is asked twice about a call. */
const all = state<Record<string, Decided>>("copilot_hooks.decided", () => ({}));

/** What was decided about a call already. */
export function decidedOf(ctx: Scope, id: string): Decided | undefined {
  return all.get(ctx)[id];
}

/** Forgets what was decided about a call: it has come out. */
export function forget(ctx: Scope, id: string): void {
  delete all.get(ctx)[id];
}

/** Decisions that others may not weaken, the weaker first. */
const strict: readonly Decided["decision"][] = ["ask", "deny"];

/** Asks about a call. What other hooks of this kind, which stand around these or beneath, have decided more strictly, stays. */
export async function decide(
  handlers: Handlers,
  ctx: Scope & { readonly turn: number },
  point: Point,
  call: Call,
): Promise<Asked> {
  const { turn } = ctx;
  if (!handlers.has("onPreToolUse")) return { decided: { turn } };
  const { id, name: toolName, input: toolArgs } = call;
  const said = await handlers.ask("onPreToolUse", ctx, point, { toolName, toolArgs });
  const { permissionDecision: decision, permissionDecisionReason: reason, additionalContext: context } = said;
  const decided: Decided = {
    ...(decision && { decision }),
    ...(reason !== undefined && { reason }),
    ...(context && { context }),
    ...(said.suppressOutput && { withheld: true }),
    turn,
  };
  const known = decidedOf(ctx, id);
  const before = known?.turn === turn ? known : undefined;
  const isStricter = before && strict.indexOf(before.decision) > strict.indexOf(decision);
  const stands: Decided = { ...(isStricter ? before : decided), ...(before?.withheld && { withheld: true }) };
  all.get(ctx)[id] = stands;
  const args = stands.decision === "deny" ? undefined : said.modifiedArgs ?? undefined;
  return { decided: stands, ...(args !== undefined && { args }) };
}

/** What the model is told of a call that is denied. */
export function refusal({ reason = "No reason provided" }: Decided): string {
  return `Denied by preToolUse hook: ${reason || "No reason provided"}`;
}

/** Asks about each call of a response, in its order: what is modified is what runs and what is kept. */
export async function reviewed(handlers: Handlers, ctx: ModelContext, response: ModelResponse): Promise<ModelResponse> {
  const parts: AnswerPart[] = [];
  for (const part of response.parts) parts.push(part.type === "call" ? await review(handlers, ctx, part) : part);
  return parts.every((part, index) => part === response.parts[index]) ? response : { ...response, parts };
}

async function review(handlers: Handlers, ctx: ModelContext, part: Extract<AnswerPart, Call>): Promise<AnswerPart> {
  const { args } = await decide(handlers, ctx, "model", part);
  if (args === undefined) return part;
  const call: Call = { id: part.id, name: part.name, input: args };
  ctx.emit({ type: "call.ready", turn: ctx.turn, call }); // whoever watches has seen the model's own
  return { type: "call", ...call };
}
