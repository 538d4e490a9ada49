/**
 * A person's answers: their schemas, the questions of a paused run that they match, whether an answer still applies to a call or its changed input, and what
 * "always" allows.
 *
 * @module
 */
import { askedIn, askOf, withoutTexts } from "./approval_hooks.ts";
import type { OpenCall } from "./call.ts";
import { canonicalJson } from "./lib/json.ts";
import type { Approval } from "./points.ts";
import type { AnsweredQuestion, AskedText, Position, SavedApproval } from "./position.ts";
import { isPaused, questionsOf, type Rule, type Session, SessionError } from "./session.ts";
import { type AnyTool, describeIssues } from "./tool.ts";
import type { Message } from "../protocol/message.ts";
import type { PersonAnswer, Question, Suggestion } from "../protocol/question.ts";

// JSON Schemas of a person's answers, for clients that show questions.

type JsonSchema = NonNullable<Question["schema"]>;

const string = { type: "string" };

/** The schema of a reply. */
export const replySchema: JsonSchema = /* @__PURE__ */ answer("reply", { text: string }, ["text"]);

/** Returns the schema of the answers about a call, given the schema of its input, and that of `always` if it is answered so. */
export function answerSchema(
  input: JsonSchema = {},
  rule: JsonSchema = { always: { enum: ["tool", "input"] } },
): JsonSchema {
  return {
    oneOf: [
      answer("approve", { input, ...rule }),
      answer("deny", { reason: string }),
      replySchema,
    ],
  };
}

/** The suggested answers about a call. */
export const suggestions: readonly Suggestion[] = [
  { type: "approve" },
  { type: "approve", always: "tool" },
  { type: "deny" },
];

function answer(type: string, properties: JsonSchema, required: readonly string[] = []): JsonSchema {
  return { type: "object", properties: { type: { const: type }, ...properties }, required: ["type", ...required] };
}

// The answers that a request gives, and the questions that they match.

const kinds: readonly unknown[] = ["approve", "deny", "reply"];
const scopes: readonly unknown[] = ["tool", "input", undefined];

/** Throws for an answer of an unknown type or scope. The question of a run, or of a subagent's run, accepts only a reply. */
function checkKind(answer: PersonAnswer, question: Question | undefined, { messages }: Session): void {
  const { callId, type } = answer;
  const fail = (expected: string, got: unknown): never => {
    const operation = `Cannot answer ${subjectOf(callId)}`;
    throw new SessionError(`${operation}: ${expected}, got "${got}"`, "invalid", undefined, messages);
  };
  if (!kinds.includes(type)) fail('expected type "approve", "deny" or "reply"', type);
  const isAboutRun = question ? question.tool === undefined : callId === undefined;
  if (isAboutRun && type !== "reply") fail('expected type "reply"', type);
  if (answer.type === "approve" && !scopes.includes(answer.always)) {
    fail('expected always "tool" or "input"', answer.always);
  }
}

/** Returns the subject of a question, for errors. */
function subjectOf(callId: string | undefined): string {
  return callId === undefined ? "the run" : `call ${callId}`;
}

/** Matches answers to the questions of a pause. Answers that were given before are accepted again. */
export function matchAnswers(stored: Session, answers: readonly PersonAnswer[]): readonly AnsweredQuestion[] {
  const { run } = stored;
  const paused = isPaused(stored);
  const questions = paused ? questionsOf(stored) : [];
  const storedAnswers = run?.answers.filter(({ answer }) => !paused || answer.callId !== undefined) ?? [];
  const answersByCall = new Map<string | undefined, AnsweredQuestion>();
  for (const answer of answers) {
    const { callId } = answer;
    const question = questions.find((question) => question.callId === callId);
    checkKind(answer, question, stored);
    const twice = answersByCall.has(callId);
    if (question && !twice) answersByCall.set(callId, answeredQuestion(question, answer, run?.position));
    else if (twice || !storedAnswers.some((earlier) => canonicalJson(earlier.answer) === canonicalJson(answer))) {
      throw new SessionError(
        `Cannot answer ${subjectOf(callId)}: ${twice ? "it is answered twice" : unasked(questions)}`,
        "unasked",
        undefined,
        stored.messages,
      );
    }
  }
  return [...answersByCall.values()];
}

/** Says that a question is not open, and which ones are. */
function unasked(questions: readonly Question[]): string {
  const open = questions.map(({ callId }) => subjectOf(callId)).join(", ");
  return `it is not asked, or was answered before; ${
    open ? `expected an answer to ${open}` : "load the session again"
  }`;
}

/** Returns an answer with its question, without the schema that the client has seen, and with the decision that led to it. */
function answeredQuestion(
  { schema: _, suggestions: __, ...question }: Question,
  answer: PersonAnswer,
  position: Position | undefined,
): AnsweredQuestion {
  const approval = approvalOf(position, answer.callId);
  return { question, answer, ...(approval && { approval }) };
}

/** Returns the saved decision about a call, which may be a call of a subagent: then it is in the session that the parent's call saved. */
function approvalOf(position: Position | undefined, callId = ""): SavedApproval | undefined {
  if (position?.at !== "tools") return undefined;
  const end = callId.indexOf("/");
  const record = position.calls.find(({ call }) => call.id === (end < 0 ? callId : callId.slice(0, end)));
  if (record?.state !== "waiting") return undefined;
  if (end < 0) return record.approval;
  const { run }: Partial<Session> = Object(record.saved); // a subagent, which asks about calls of its own, saves its session
  return approvalOf(run?.position, callId.slice(end + 1));
}

/** Validates edited inputs against the tools' schemas, while the person can still correct them. */
export async function validateEdits(
  { messages }: { readonly messages: readonly Message[] },
  answered: readonly AnsweredQuestion[],
  tools: readonly AnyTool[],
): Promise<void> {
  for (const each of answered) {
    const { question, answer } = each;
    const edit = editOf(each);
    if (edit === undefined || question.path) continue;
    const tool = tools.find(({ name }) => name === question.tool);
    const { issues } = await tool?.input["~standard"].validate(edit) ?? {};
    if (issues) {
      const why = `its input is wrong: ${describeIssues(issues)}`;
      throw new SessionError(`Cannot answer call ${answer.callId}: ${why}`, "invalid", undefined, messages);
    }
  }
}

/** Returns the input that a person put in place of the one that they saw, if they did. */
export function editOf({ question, answer, approval }: AnsweredQuestion): unknown {
  if (answer.type !== "approve" || answer.input === undefined) return undefined;
  const edit = canonicalJson(answer.input);
  const isSeen = edit === canonicalJson(question.input) || (approval && edit === canonicalJson(approval.input));
  return isSeen ? undefined : answer.input;
}

// A person's decision about a call: an answer to its question, or a rule. It counts for the form of the call that they were asked about, and for the
// questions that they were asked.

/** One form of a call: the tool and the input that would run. */
export interface CallForm {
  /** The name of the tool. */
  readonly name: string;
  /** The input, before the tool's schema. */
  readonly input: unknown;
  /** The input after the tool's schema, as JSON. */
  readonly parsed: unknown;
}

/** A person's decision about one form of a call. */
export type PersonsDecision =
  | { readonly type: "decided"; readonly answer: Exclude<PersonAnswer, { type: "approve" }> }
  | { readonly type: "edited"; readonly answered: AnsweredQuestion; readonly input: unknown }
  /** The person approved this form. `asked` is what they were asked then. Undefined for all questions: the person wrote this form. */
  | { readonly type: "approved"; readonly asked: readonly AskedText[] | undefined };

/**
 * Returns a person's decision about a form. A denial or a reply counts for the call in every form, an approval for the input that they saw, or that they wrote. The
 * latest answer decides.
 */
export function personsDecisionOf(
  { scope: { engine: { loop } }, record: { call } }: OpenCall,
  { name, input, parsed }: CallForm,
): PersonsDecision | undefined {
  const answers = loop.answers.filter(({ answer }) => answer.callId === call.id);
  const latest = answers.at(-1)?.answer;
  if (latest && latest.type !== "approve") return { type: "decided", answer: latest };
  let asked: AskedText[] | undefined;
  for (const answered of answers.toReversed()) {
    const { question, answer, approval } = answered;
    if (answer.type !== "approve" || question.tool !== name) continue;
    const isAsked = isSame(input, approval ? approval.input : question.input);
    const edit = editOf(answered);
    if (edit === undefined) {
      if (!isAsked || !isSame(parsed, question.input)) continue;
      if (!approval) return { type: "approved", asked: undefined }; // an earlier version did not save it
      asked = [...asked ?? [], ...approval.asked];
    } else if (isSame(input, edit)) return { type: "approved", asked: undefined };
    else if (isAsked && !asked) return { type: "edited", answered, input: edit };
  }
  return asked && { type: "approved", asked };
}

/** Returns true if two values have the same JSON. */
export function isSame(one: unknown, other: unknown): boolean {
  return canonicalJson(one) === canonicalJson(other);
}

// What "always" allows.

/** Returns the rules of an answer that always allows such calls: one for each text of the question, which binds to the guard that asked. */
export function rulesOf(answered: AnsweredQuestion): Rule[] {
  const { question: { tool, path, input }, answer, approval } = answered;
  if (answer.type !== "approve" || !answer.always || tool === undefined || !approval) return [];
  return approval.asked.map(({ middleware, text, key = text }) => ({
    tool,
    ...(path && { path }),
    ...(answer.always === "input" && { input: editOf(answered) ?? input }),
    askedBy: { ...(middleware !== undefined && { middleware }), key },
  }));
}

/** Returns the verdict without the questions that a person's approval or their rules answer. Allows if none is left. */
export function openQuestions(
  approval: Approval,
  { scope: { engine: { toolPath, rules } } }: OpenCall,
  { name, parsed }: CallForm,
  person: PersonsDecision | undefined,
): Approval {
  if (approval.type !== "ask") return approval;
  if (person?.type === "approved" && !person.asked) return { type: "allow" };
  const answered = person?.type === "approved" ? person.asked ?? [] : [];
  const path = canonicalJson(toolPath);
  const ruled = rules.filter((rule) =>
    rule.tool === name && canonicalJson(rule.path ?? []) === path &&
    (rule.input === undefined || isSame(rule.input, parsed))
  );
  const unanswered = withoutTexts(askedIn(approval), answered).filter((each) =>
    !ruled.some((rule) => isRuleFor(rule, each))
  );
  return askOf(unanswered, approval);
}

/** Returns true if a rule answers a question. */
function isRuleFor({ askedBy }: Rule, { middleware, text, key = text }: AskedText): boolean {
  return askedBy?.middleware === middleware && askedBy?.key === key;
}
