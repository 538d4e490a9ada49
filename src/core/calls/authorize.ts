/**
 * The decision about one call: validates its input, runs `approval`, and applies a person's answer.
 *
 * @module
 */
import type { Decider, Decision } from "../../protocol/tool_event.ts";
import type { ToolResult } from "../../protocol/message.ts";
import type { Question } from "../../protocol/question.ts";
import type { AnyTool } from "../agent/tool.ts";
import type { Approval, ApprovalContext, ToolContext } from "../hooks/points/call.ts";
import { denied, text } from "../hooks/results.ts";
import type { Scope } from "../hooks/scope.ts";
import { canonicalJson } from "../lib/canonical_json.ts";
import { approve } from "./approval.ts";
import { isRuled, personsAnswer } from "./persons_answer.ts";
import { answerSchema, suggestions } from "./question.ts";
import { interrupted } from "./outcome.ts";
import type { CallRecord } from "../run/position.ts";
import type { StepScope } from "../run/run.ts";
import { type ParsedInput, parseToolInput } from "./tool_io.ts";

/** The number of times that hooks, guards and people may change one call after it has passed the `tool` hooks. */
export const maxRevisions = 3;

/** The decision about one call: execute it, answer it, ask a person, or decide again with another input. */
export type CallDecision =
  | {
    readonly type: "execute";
    readonly tool: AnyTool;
    /** The parsed input. */
    readonly input: unknown;
    /** The input as JSON. */
    readonly json: unknown;
    /** The scope inside the `tool` hooks. */
    readonly scope: Scope;
  }
  | { readonly type: "answer"; readonly result: ToolResult }
  | { readonly type: "ask"; readonly question: Question }
  | Revision;

/** A call that passes the `tool` hooks once more: a guard or a person edited its input, or a hook renamed it. */
export interface Revision {
  readonly type: "revise";
  readonly name: string;
  readonly input: unknown;
  /** True if a guard or a person edited the input. */
  readonly edited: boolean;
}

/** A call to decide. */
export interface Undecided {
  readonly scope: StepScope;
  readonly record: CallRecord;
  readonly place: { readonly turn: number; readonly barred?: ToolResult | undefined };
  /** Receives a text for the model: that a person changed the input. */
  note: string | undefined;
  /** The number of times that the call has passed the `tool` hooks before. */
  readonly revisions: number;
  /** The edited inputs that have passed the `tool` hooks, as canonical JSON. */
  readonly edits: string[];
  /** True if hooks renamed the call more often than it may pass them. */
  readonly renamedTooOften: boolean;
}

/** Decides a call with its final name and input. `proposed` is the result of a hook that answered in place of the tool. */
export async function authorize(
  ctx: ToolContext,
  call: Undecided,
  proposed: ToolResult | undefined,
): Promise<CallDecision> {
  const { scope: { engine }, place } = call;
  const saved = savedDecision(ctx, call, proposed);
  if (saved) return saved;
  if (proposed?.status === "denied") return decided(ctx, call, "deny", "policy", proposed);
  if (place.barred) return { type: "answer", result: place.barred };
  if (call.renamedTooOften) return changedTooOften(ctx, call);
  let { input } = ctx;
  for (let edits = call.revisions; edits <= maxRevisions; edits++) {
    const checked = parseToolInput(engine, ctx, input);
    const parsed = checked instanceof Promise ? await checked : checked; // a synchronous schema costs no turn of the microtask queue
    if (!proposed && "wrong" in parsed) return { type: "answer", result: { ...parsed.wrong, input } };
    const approval = await approve(contextOf(ctx, input, proposed), engine, parsed);
    const decision = apply(ctx, call, approval, { input, parsed, proposed });
    if (decision.type !== "revise") return decision;
    const edit = canonicalJson([ctx.name, decision.input]);
    if (call.revisions < maxRevisions && !call.edits.includes(edit)) {
      call.edits.push(edit);
      return decision;
    }
    input = decision.input; // the hooks have seen this edit and put another input in its place: the guards decide about the edit as it is
  }
  return changedTooOften(ctx, call);
}

/** Returns the decision about a call that was allowed before the process died, or a hook paused the run. It is not asked about again. */
function savedDecision(
  ctx: ToolContext,
  { record, scope: { engine } }: Undecided,
  proposed: ToolResult | undefined,
): CallDecision | undefined {
  if (record.state === "ran") return { type: "answer", result: proposed ?? record.raw };
  if (record.state !== "running") return undefined;
  const { name, input } = record;
  const tool = engine.settings.toolsByName.get(name);
  if (!tool?.idempotent) return { type: "answer", result: { ...interrupted, input } };
  return { type: "execute", tool, input, json: input, scope: ctx };
}

function changedTooOften(ctx: ToolContext, call: Undecided): CallDecision {
  return decided(ctx, call, "deny", "policy", denied("The input was changed too often."));
}

/** The parts of a decision: the input, and the result of a hook that answered. */
interface Round {
  readonly input: unknown;
  readonly parsed: ParsedInput;
  readonly proposed: ToolResult | undefined;
}

/** Applies the guards' verdict and a person's answer. An edit leads to a revision. */
function apply(
  ctx: ToolContext,
  call: Undecided,
  approval: Approval,
  { input, parsed, proposed }: Round,
): CallDecision {
  const { tool, name } = ctx;
  if (approval.type === "deny") {
    return decided(ctx, call, "deny", "policy", denied(approval.reason || "It is not allowed."));
  }
  const person = personsAnswer(call, name, input); // a person's no, reply or edit counts even if no guard asks now
  if (person?.type === "deny") {
    const { reason } = person;
    const result = denied(reason ? `A person said no: ${reason}` : "A person said no.");
    return decided(ctx, call, "deny", "person", result);
  }
  if (person?.type === "reply") {
    return decided(ctx, call, "allow", "person", { ...text(person.text), input });
  }
  const isOpen = approval.type === "ask" && !person;
  const ruled = isOpen && isRuled(call, name, input);
  if (isOpen && !ruled) return askPerson(ctx, call, approval, input);
  const edit = (approval.type === "allow" ? approval.input : undefined) ?? person?.input;
  if (edit !== undefined && canonicalJson(edit) !== canonicalJson(input)) {
    if (edit === person?.input) call.note = `A person changed the input of ${name} to ${JSON.stringify(edit)}.`;
    return { type: "revise", name, input: edit, edited: true };
  }
  const by = person ? "person" : ruled ? "rule" : "policy";
  if (proposed) return decided(ctx, call, "allow", by, { ...proposed, input });
  if (!tool || "wrong" in parsed) return changedTooOften(ctx, call); // not reached: only a proposed result has no tool
  announce(ctx, call, "allow", by);
  return { type: "execute", tool, input: parsed.input, json: input, scope: ctx };
}

function contextOf(
  { run, signal, emit, vars, call, tool, name, turn }: ToolContext,
  input: unknown,
  proposed: ToolResult | undefined,
): ApprovalContext {
  const ctx = { run, signal, emit, vars, call, tool, name, input, turn };
  return proposed ? { ...ctx, proposed } : ctx;
}

function askPerson(
  { emit, name, tool }: ToolContext,
  { scope: { engine }, record: { call }, place: { turn } }: Undecided,
  { type: _, ...asked }: Extract<Approval, { type: "ask" }>,
  input: unknown,
): CallDecision {
  const question: Question = { callId: call.id, tool: name, input, questions: asked.questions };
  engine.events.announce(emit, { type: "approval.asked", turn, call: call.id, ...question });
  const schema = answerSchema(tool?.definition.schema);
  return { type: "ask", question: { ...question, schema, suggestions, ...asked } };
}

/** Announces a decision that answers the call. */
function decided(ctx: ToolContext, call: Undecided, verdict: Decision, by: Decider, result: ToolResult): CallDecision {
  announce(ctx, call, verdict, by, verdict === "deny" ? result : undefined);
  return { type: "answer", result };
}

function announce(
  { emit }: ToolContext,
  { scope: { engine }, record: { call }, place: { turn } }: Undecided,
  decision: Decision,
  by: Decider,
  result?: ToolResult,
): void {
  const [part] = result?.parts ?? [];
  const event = { type: "approval.decided", turn, call: call.id, decision, by } as const;
  engine.events.announce(emit, part?.type === "text" ? { ...event, reason: part.text } : event);
}
