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
  type ToolContext,
} from "../../../mod.ts";
import { inputThatRuns } from "../kit/call.ts";
import type { Handlers } from "./handlers.ts";

/** The decision of the hook about a call. */
export interface Decided {
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
export interface Judged {
  readonly input: unknown;
  /** True if the hook has changed the input. Default: false. */
  readonly isChange?: boolean;
}

/** Returns the input that the hook of an owner has decided about. After a pause, another process has other owners: there, the only one counts. */
export function judgedBy({ owner }: Handlers, { judged = {} }: Decided): Judged | undefined {
  const all = Object.values(judged);
  return judged[owner] ?? (all.length === 1 ? all[0] : undefined);
}

/** A decision in its batch. */
interface EnteredCall extends DecidedCall {
  readonly batch: string;
}

/** A decision, and the modified input. */
export interface DecidedCall {
  readonly decided: Decided;
  readonly args?: unknown;
}

/** A call to decide. */
export interface Undecided extends Pick<Call, "id" | "name" | "input"> {
  /** The tool, once it is known. */
  readonly tool?: ToolContext["tool"];
  /** True if the hook has changed this input before, so that it does not change it twice. Default: false. */
  readonly isChanged?: boolean | undefined;
}

/** The decisions by call id, until the calls have left their hooks. They outlive a pause, so that no hook is asked twice about a call. */
const all = state<Record<string, Decided>>("copilot_hooks.decided", () => ({}));

/** The decisions about calls that have entered, of the outermost middleware first. They outlive a pause. */
const entered = state<Record<string, readonly EnteredCall[]>>("copilot_hooks.entered", () => ({}));

/** Returns the decision about a call, if there is one. */
export function decidedOf(ctx: Scope, id: string): Decided | undefined {
  return all.get(ctx)[id];
}

/** Forgets a call that has come out. */
export function forget(ctx: Scope & { readonly turn: number }, id: string): void {
  delete all.get(ctx)[id];
  delete entered.get(ctx)[`${ctx.turn} ${id}`];
}

/** The decisions that others may not weaken, the weaker one first. */
const strict: readonly Decided["decision"][] = ["ask", "deny"];

/** Asks about a call. A stricter decision of another middleware of this kind stays. */
export async function decide(
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

/** Asks about a call that enters. Returns the decision that was made before a pause, if there is one. */
export async function decideOnEntry(handlers: Handlers, ctx: ToolContext): Promise<DecidedCall> {
  const { call: { id }, name, tool, batchId: batch } = ctx;
  if (!handlers.has("onPreToolUse")) return { decided: { turn: ctx.turn } };
  const key = `${ctx.turn} ${id}`;
  const known = entered.get(ctx)[key] ?? [];
  const place = known.findLastIndex((each) => each.batch === batch) + 1; // outer middleware of this kind have entered before
  const made = known[place] ??
    await askAbout(handlers, ctx, "tool", { id, name, tool, input: await inputThatRuns(ctx) });
  const all = known.toSpliced(place, 1, { ...made, batch });
  entered.update(ctx, (calls) => ({ ...calls, [key]: all }));
  return made;
}

/** Returns the strictest decision of all middleware of this kind about a call that has entered. `own` wins among equals. */
export function strictestOf(ctx: Scope & { readonly turn: number; readonly call: Call }, own: Decided): Decided {
  const all = entered.get(ctx)[`${ctx.turn} ${ctx.call.id}`] ?? [];
  const rank = ({ decision }: Decided) => strict.indexOf(decision);
  return all.reduce((found, { decided }) => rank(decided) > rank(found) ? decided : found, own);
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
