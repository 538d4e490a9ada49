/**
 * The decision about one call: whether it runs, is answered, waits for a person or is decided again. Validates its input, runs `approval`, applies a person's
 * answer, and decides which calls run again after a crash.
 *
 * @module
 */
import { approve, type Ask, askedIn, isEdit } from "./approval_hooks.ts";
import type { OpenCall } from "./call.ts";
import { interrupted } from "./call_results.ts";
import { denied, text } from "./hook_answers.ts";
import { canonicalJson } from "./lib/json.ts";
import {
  answerSchema,
  type CallForm,
  isSame,
  openQuestions,
  type PersonsDecision,
  personsDecisionOf,
  suggestions,
} from "./persons_answers.ts";
import type { Approval, ApprovalContext, ToolContext } from "./points.ts";
import type { AnsweredQuestion, AskedText, CallRecord, SavedApproval } from "./position.ts";
import type { Scope } from "./scope.ts";
import type { AnyTool } from "./tool.ts";
import { type ParsedInput, parseToolInput } from "./tool_io.ts";
import type { Decider, Decision } from "../protocol/event.ts";
import type { ToolResult } from "../protocol/message.ts";
import type { Question } from "../protocol/question.ts";

/** The number of times that hooks, guards and people may change one call after it has passed the `tool` hooks. */
export const maxRevisions = 3;

/** The decision about one call: execute it, answer it, ask a person, or decide again with another input. */
export type CallDecision =
  | Execution
  | { readonly type: "answer"; readonly result: ToolResult }
  | { readonly type: "ask"; readonly question: Question; readonly approval: SavedApproval }
  | Revision;

/** The decision to execute a call. */
export interface Execution {
  readonly type: "execute";
  readonly tool: AnyTool;
  /** The parsed input. */
  readonly input: unknown;
  /** The input as JSON. */
  readonly json: unknown;
  /** The scope inside the `tool` hooks. */
  readonly scope: Scope;
  /** The decision of the guards, for a tool that pauses. Undefined after a crash. */
  readonly approval?: SavedApproval;
  /** A text for the model beside the result: that a person changed the input. */
  readonly note?: string | undefined;
}

/** A call that passes the `tool` hooks once more: a guard or a person edited its input, or a hook renamed it. */
export interface Revision {
  readonly type: "revise";
  readonly name: string;
  readonly input: unknown;
  /** True if a guard or a person edited the input. */
  readonly edited: boolean;
  /** The edit of a guard, as canonical JSON. */
  readonly guardsEdit?: string;
  /** The answer of a person with an edit: the hooks may change the input as often as that of a new call. */
  readonly personsEdit?: AnsweredQuestion;
}

/** The revisions of a call so far. */
export interface Revisions {
  /** The revisions since it was received, or since a person edited it. */
  readonly count: number;
  /** The edits of guards that have passed the hooks, as canonical JSON. */
  readonly guardsEdits: readonly string[];
  /** The answers with an edit that has passed the hooks. */
  readonly personsEdits: readonly AnsweredQuestion[];
  /** The last one. */
  readonly last?: Revision;
}

/** The revisions of a call that was received. */
export const noRevisions: Revisions = { count: 0, guardsEdits: [], personsEdits: [] };

/** Returns the revisions with one more. */
export function addRevision({ count, guardsEdits, personsEdits }: Revisions, last: Revision): Revisions {
  const { guardsEdit, personsEdit } = last;
  return {
    count: personsEdit ? 0 : count + 1,
    guardsEdits: guardsEdit === undefined ? guardsEdits : [...guardsEdits, guardsEdit],
    personsEdits: personsEdit ? [...personsEdits, personsEdit] : personsEdits,
    last,
  };
}

/** Decides a call with its final name and input. `proposed` is the result of a hook that answered in place of the tool. */
export async function authorize(
  ctx: ToolContext,
  call: OpenCall,
  proposed: ToolResult | undefined,
): Promise<CallDecision> {
  const { scope: { engine }, place, record: { state }, revisions: { count, guardsEdits } } = call;
  if (state === "ran" || state === "running") return await savedDecision(ctx, call, proposed);
  if (proposed?.status === "denied") return decided(ctx, call, "deny", "policy", proposed);
  if (place.barred) return { type: "answer", result: place.barred };
  if (call.phase.at === "received" && call.phase.renamedTooOften) return denyChangedTooOften(ctx, call);
  let { input } = ctx;
  for (let edits = count; edits <= maxRevisions; edits++) {
    const before = earlierApproval(call, ctx.name, input);
    const checked = before ? parseAgain(ctx, call, input, before) : parseToolInput(engine, ctx, input);
    const parsed = checked instanceof Promise ? await checked : checked; // a synchronous schema costs no turn of the microtask queue
    if (!proposed && "invalid" in parsed) return { type: "answer", result: { ...parsed.invalid, input } };
    const form = { name: ctx.name, input, parsed: "invalid" in parsed ? input : parsed.json };
    const guards = new Map<string, readonly AskedText[]>();
    const approval = await approve(contextOf(ctx, form, proposed), { engine, parsed, before, guards });
    const saved = { ...form, asked: [], guards: [...guards] };
    const decision = applyApproval(ctx, call, approval, { form, parsed, proposed, saved });
    if (decision.type !== "revise" || decision.personsEdit) return decision;
    const guardsEdit = canonicalJson([ctx.name, decision.input]);
    if (count < maxRevisions && !guardsEdits.includes(guardsEdit)) return { ...decision, guardsEdit };
    input = decision.input; // the hooks have seen this edit and put another input in its place: the guards decide about the edit as it is
  }
  return denyChangedTooOften(ctx, call);
}

/** Returns the decision about a call that was allowed before the process died, or a hook paused the run. It is not asked about again. */
async function savedDecision(
  ctx: ToolContext,
  call: OpenCall,
  proposed: ToolResult | undefined,
): Promise<CallDecision> {
  const { record, scope: { engine } } = call;
  if (record.state === "ran") return { type: "answer", result: proposed ?? record.raw };
  const { name, input } = record as Extract<CallRecord, { state: "running" }>; // the other state that was allowed
  const tool = engine.settings.toolsByName.get(name);
  if (!tool || !call.mayRepeat(tool)) return { type: "answer", result: { ...interrupted, input } };
  const parsed = await parseToolInput(engine, { ...ctx, tool, name }, input);
  if ("invalid" in parsed) return { type: "answer", result: { ...parsed.invalid, input } };
  return { type: "execute", tool, input: parsed.input, json: input, scope: ctx };
}

/** Returns the decision about the same tool and input that was saved while the call waited, if there is one. */
function earlierApproval({ record }: OpenCall, name: string, input: unknown): SavedApproval | undefined {
  const approval = record.state === "waiting" ? record.approval : undefined;
  return approval && approval.name === name && isSame(approval.input, input) ? approval : undefined;
}

/**
 * Validates an input that a person may have been asked about. If the tool's schema returns another value now, as one with a random default does, it returns the
 * value that they saw, if the schema accepts that.
 */
async function parseAgain(
  ctx: ToolContext,
  call: OpenCall,
  input: unknown,
  before: SavedApproval,
): Promise<ParsedInput> {
  const { scope: { engine } } = call;
  const isSeen = (parsed: ParsedInput) => "json" in parsed && isSame(parsed.json, before.parsed);
  const parsed = await parseToolInput(engine, ctx, input);
  if (isSeen(parsed)) return parsed;
  const again = await parseToolInput(engine, ctx, before.parsed);
  return isSeen(again) ? again : parsed;
}

function denyChangedTooOften(ctx: ToolContext, call: OpenCall): CallDecision {
  return decided(ctx, call, "deny", "policy", denied("The input was changed too often."));
}

/** The parts of a decision: the form of the call, the result of a hook that answered, and what is saved if the call waits. */
interface CheckedForm {
  readonly form: CallForm;
  readonly parsed: ParsedInput;
  readonly proposed: ToolResult | undefined;
  readonly saved: SavedApproval;
}

/** Applies the guards' verdict and a person's answer. An edit leads to a revision. */
function applyApproval(ctx: ToolContext, call: OpenCall, approval: Approval, checked: CheckedForm): CallDecision {
  const { tool, name } = ctx;
  const { form, form: { input }, parsed, proposed, saved } = checked;
  if (approval.type === "deny") {
    return decided(ctx, call, "deny", "policy", denied(approval.reason || "It is not allowed."));
  }
  const person = personsDecisionOf(call, form);
  if (person?.type === "decided") return applyAnswer(ctx, call, person.answer, input); // also if no guard asks now
  if (isEdit(approval, { input: form.parsed, unparsed: input })) {
    return { type: "revise", name, input: approval.input, edited: true };
  }
  if (person?.type === "edited" && !call.revisions.personsEdits.includes(person.answered)) {
    return { type: "revise", name, input: person.input, edited: true, personsEdit: person.answered };
  }
  const unanswered = openQuestions(approval, call, form, person);
  if (unanswered.type === "ask") {
    return isInputUnstable(call, form) ? denyUnstableInput(ctx, call) : askPerson(ctx, call, unanswered, checked);
  }
  const by = person?.type === "approved" ? "person" : approval.type === "ask" ? "rule" : "policy";
  if (proposed) return decided(ctx, call, "allow", by, { ...proposed, input });
  if (!tool || "invalid" in parsed) return denyChangedTooOften(ctx, call); // not reached: only a proposed result has no tool
  emitDecision(ctx, call, "allow", by);
  const note = noteOf(call, form);
  return { type: "execute", tool, input: parsed.input, json: input, scope: ctx, approval: saved, note };
}

/** True if a person has approved this input more often than it may change, and the tool's schema returned another value each time. */
function isInputUnstable(
  { scope: { engine: { loop } }, record: { call } }: OpenCall,
  { name, input, parsed }: CallForm,
): boolean {
  const isOfOther = ({ answer, question, approval }: AnsweredQuestion) =>
    answer.callId === call.id && answer.type === "approve" && question.tool === name &&
    isSame(approval?.input, input) && !isSame(question.input, parsed);
  return loop.answers.filter(isOfOther).length > maxRevisions;
}

/** Denies a call of which a person never sees the input that would run. */
function denyUnstableInput(ctx: ToolContext, call: OpenCall): CallDecision {
  const expected = "its schema returns another value each time; expected the same one";
  call.scope.engine.events.report(new TypeError(`Cannot ask a person about "${ctx.name}": ${expected}`));
  const why = "Its tool returns another input each time, so a person cannot approve it.";
  return decided(ctx, call, "deny", "policy", denied(why));
}

/** Applies a person's denial, or their reply in place of the tool. */
function applyAnswer(
  ctx: ToolContext,
  call: OpenCall,
  answer: Extract<PersonsDecision, { type: "decided" }>["answer"],
  input: unknown,
): CallDecision {
  if (answer.type === "reply") return decided(ctx, call, "allow", "person", { ...text(answer.text), input });
  const { reason } = answer;
  return decided(ctx, call, "deny", "person", denied(reason ? `A person said no: ${reason}` : "A person said no."));
}

/** Returns the text for the model if a person's edit led to the input that runs. */
function noteOf({ revisions: { personsEdits } }: OpenCall, { name, input }: CallForm): string | undefined {
  const edited = personsEdits.at(-1);
  if (!edited || isSame(input, edited.approval?.input ?? edited.question.input)) return undefined;
  return `A person changed the input of ${name} to ${JSON.stringify(input)}.`;
}

function contextOf(
  { run, signal, emit, vars, call, tool, name, turn }: ToolContext,
  { input, parsed }: CallForm,
  proposed: ToolResult | undefined,
): ApprovalContext {
  const ctx = { run, signal, emit, vars, call, tool, name, input: parsed, parsed, unparsed: input, turn };
  return proposed ? { ...ctx, proposed } : ctx;
}

/** Asks a person. If hooks have changed the person's edit, the question contains both forms. */
function askPerson(
  { emit, name, tool }: ToolContext,
  call: OpenCall,
  unanswered: Ask,
  { form: { input, parsed }, saved }: CheckedForm,
): CallDecision {
  const { scope: { engine }, record: { call: { id } }, place: { turn } } = call;
  const { type: _, "~asked": __, questions: texts, ...more } = unanswered;
  const edit = call.revisions.personsEdits.at(-1)?.answer;
  const isTurned = edit?.type === "approve" && !isSame(edit.input, input);
  const forms = isTurned
    ? [`A hook changed your input ${JSON.stringify(edit.input)} to ${JSON.stringify(parsed)}.`]
    : [];
  const question: Question = { callId: id, tool: name, input: parsed, questions: [...texts, ...forms] };
  engine.events.emitThrough(emit, { type: "approval.asked", turn, call: id, ...question });
  const schema = answerSchema(tool?.definition.schema);
  const approval = { ...saved, asked: askedIn(unanswered) };
  return { type: "ask", question: { ...question, schema, suggestions, ...more }, approval };
}

/** Emits a decision, and answers the call with it. */
function decided(ctx: ToolContext, call: OpenCall, verdict: Decision, by: Decider, result: ToolResult): CallDecision {
  emitDecision(ctx, call, verdict, by, verdict === "deny" ? result : undefined);
  return { type: "answer", result };
}

function emitDecision(
  { emit }: ToolContext,
  { scope: { engine }, record: { call }, place: { turn } }: OpenCall,
  decision: Decision,
  by: Decider,
  result?: ToolResult,
): void {
  const [part] = result?.parts ?? [];
  const event = { type: "approval.decided", turn, call: call.id, decision, by } as const;
  engine.events.emitThrough(emit, part?.type === "text" ? { ...event, reason: part.text } : event);
}
