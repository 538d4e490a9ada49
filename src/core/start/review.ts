/**
 * The `input` point for messages that reach a run outside of its steps: steering, and a person's answers.
 *
 * @module
 */
import { textOf, user, type UserMessage } from "../../protocol/message.ts";
import type { PersonAnswer } from "../../protocol/question.ts";
import { isInterrupt } from "../hooks/interrupt.ts";
import type { InputSource } from "../hooks/points/run.ts";
import type { Scope } from "../hooks/scope.ts";
import { SessionError } from "../persistence/session_error.ts";
import { reviewInput } from "../steps/input_step.ts";
import type { AnsweredQuestion } from "../run/position.ts";
import type { EngineRun } from "../run/run.ts";

/** Reviews one message. Returns it after its context. Throws a `SessionError` if it is refused, or if a hook ends or pauses the run. */
export async function reviewMessage(
  engine: EngineRun,
  scope: Scope,
  source: InputSource,
  message: UserMessage,
): Promise<readonly UserMessage[]> {
  const action = source === "reply" ? "resume" : "send a message to";
  const refuse = (reason: string) => new SessionError(`Cannot ${action} run "${engine.id}": ${reason}`, "refused");
  try {
    const { status, messages, reason } = await reviewInput(engine, scope, source, [message]);
    if (status === "cancelled") throw refuse(reason ?? "it is refused");
    return messages as readonly UserMessage[]; // the point accepts nothing else from these sources
  } catch (error) {
    throw isInterrupt(error) ? refuse(error.message) : error;
  }
}

/** Reviews the texts of answers. Returns the answers with the accepted texts. Throws a `SessionError` if one is refused. */
export async function reviewAnswers(
  engine: EngineRun,
  scope: Scope,
  given: readonly AnsweredQuestion[],
): Promise<readonly AnsweredQuestion[]> {
  const accepted: AnsweredQuestion[] = [];
  for (const { answer, ...rest } of given) {
    const text = textOfAnswer(answer);
    const [message] = text === undefined ? [] : await reviewMessage(engine, scope, "reply", user(text));
    accepted.push({ ...rest, answer: message ? replaceText(answer, textOf(message)) : answer });
  }
  return accepted;
}

function textOfAnswer(answer: PersonAnswer): string | undefined {
  return answer.type === "reply" ? answer.text : answer.type === "deny" ? answer.reason : undefined;
}

function replaceText(answer: PersonAnswer, text: string): PersonAnswer {
  if (answer.type === "reply") return { ...answer, text };
  return answer.type === "deny" ? { ...answer, reason: text } : answer;
}
