/**
 * A person's answers to the questions of a paused run.
 *
 * @module
 */
import type { PersonAnswer, Question } from "../../protocol/question.ts";
import { describeIssues } from "../agent/schema.ts";
import type { AnyTool } from "../agent/tool.ts";
import { canonicalJson } from "../lib/canonical_json.ts";
import type { AnsweredQuestion } from "../run/position.ts";
import { isPaused, questionsOf, type Rule, type Session } from "./session.ts";
import { SessionError } from "./session_error.ts";

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
  const lost = !isPaused(stored);
  const questions = lost ? [] : questionsOf(stored);
  const taken = run?.answers.filter(({ answer }) => lost || answer.callId !== undefined) ?? [];
  const given = new Map<string | undefined, AnsweredQuestion>();
  for (const answer of answers) {
    const { callId } = answer;
    const question = questions.find((question) => question.callId === callId);
    checkKind(answer, question, stored);
    const twice = given.has(callId);
    if (question && !twice) given.set(callId, { question, answer });
    else if (twice || !taken.some((earlier) => canonicalJson(earlier.answer) === canonicalJson(answer))) {
      throw new SessionError(
        `Cannot answer ${subjectOf(callId)}: it is ${twice ? "answered twice" : "not asked"}`,
        "unasked",
        undefined,
        stored.messages,
      );
    }
  }
  return [...given.values()];
}

/** Validates edited inputs against the tools' schemas, while the person can still correct them. */
export async function validateEdits(
  { messages }: Session,
  given: readonly AnsweredQuestion[],
  tools: readonly AnyTool[],
): Promise<void> {
  for (const { question, answer } of given) {
    if (answer.type !== "approve" || answer.input === undefined || question.path) continue;
    const tool = tools.find(({ name }) => name === question.tool);
    const { issues } = await tool?.input["~standard"].validate(answer.input) ?? {};
    if (issues) {
      const why = `its input is wrong: ${describeIssues(issues)}`;
      throw new SessionError(`Cannot answer call ${answer.callId}: ${why}`, "invalid", undefined, messages);
    }
  }
}

/** Returns the rule of an answer that always allows such calls. */
export function ruleOf({ question: { tool, path, input }, answer }: AnsweredQuestion): Rule[] {
  if (answer.type !== "approve" || !answer.always || tool === undefined) return [];
  return [{
    tool,
    ...(path && { path }),
    ...(answer.always === "input" && { input: answer.input ?? input }),
  }];
}
