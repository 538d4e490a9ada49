/**
 * A person's decision about a call: an answer to its question, or a rule. It counts for the form of the call that they were asked about, and for the questions
 * that they were asked.
 *
 * @module
 */
import type { Call } from "../../protocol/part.ts";
import type { PersonAnswer } from "../../protocol/question.ts";
import type { Approval } from "../hooks/points/call.ts";
import { canonicalJson } from "../lib/canonical_json.ts";
import { editOf } from "../persistence/answers.ts";
import type { AnsweredQuestion, AskedText } from "../run/position.ts";
import type { StepScope } from "../run/run.ts";
import { askedIn, askOf, isSameQuestion } from "./approval.ts";

/** A call, and the run that knows the answers and the rules. */
interface CallOfRun {
  readonly scope: StepScope;
  readonly record: { readonly call: Call };
}

/** One form of a call: the tool and the input that would run. */
export interface CallForm {
  /** The name of the tool. */
  readonly name: string;
  /** The input, before the tool's schema. */
  readonly input: unknown;
  /** The input after the tool's schema, as JSON. */
  readonly parsed: unknown;
}

/** A person's word about one form of a call. */
export type PersonsWord =
  | { readonly type: "decided"; readonly answer: Exclude<PersonAnswer, { type: "approve" }> }
  | { readonly type: "edited"; readonly answered: AnsweredQuestion; readonly input: unknown }
  /** The person approved this form. `asked` is what they were asked then. Undefined for all questions: the person wrote this form. */
  | { readonly type: "approved"; readonly asked: readonly AskedText[] | undefined };

/**
 * Returns a person's word about a form. A denial or a reply counts for the call in every form, an approval for the input that they saw, or that they wrote. The
 * latest answer decides.
 */
export function wordOf(
  { scope: { engine: { loop } }, record: { call } }: CallOfRun,
  { name, input, parsed }: CallForm,
): PersonsWord | undefined {
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

/** Returns the verdict without the questions that a person's approval or their rules answer. Allows if none is left. */
export function openQuestions(
  approval: Approval,
  { scope: { engine: { toolPath, rules } } }: Pick<CallOfRun, "scope">,
  { name, parsed }: CallForm,
  word: PersonsWord | undefined,
): Approval {
  if (approval.type !== "ask") return approval;
  const path = canonicalJson(toolPath);
  const answered = word?.type === "approved" ? word.asked : [];
  const isRuled = ({ middleware, text, key = text }: AskedText) =>
    rules.some((rule) =>
      rule.tool === name && canonicalJson(rule.path ?? []) === path &&
      rule.askedBy?.middleware === middleware && rule.askedBy?.key === key &&
      (rule.input === undefined || isSame(rule.input, parsed))
    );
  const isOpen = (each: AskedText) =>
    answered && !answered.some((other) => isSameQuestion(each, other)) && !isRuled(each);
  return askOf(askedIn(approval).filter(isOpen), approval);
}
