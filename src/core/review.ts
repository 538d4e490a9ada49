/**
 * The `input` point for texts that reach a run outside of its steps: steering, a person's answers, and other texts of a client that the model reads.
 *
 * @module
 */
import { editOf } from "./answers.ts";
import { reviewInput } from "./input_step.ts";
import { isInterrupt } from "./interrupt.ts";
import type { InputSource } from "./points.ts";
import type { AnsweredQuestion } from "./position.ts";
import { engineOf, type EngineRun } from "./run.ts";
import type { Scope } from "./scope.ts";
import { SessionError } from "./session.ts";
import { ToolError } from "./tool.ts";
import { textOf, user, type UserMessage } from "../protocol/message.ts";
import type { PersonAnswer } from "../protocol/question.ts";

/** The error of a text that the `input` hooks refuse. It stays inside the engine: a client receives the reason. */
export class Refusal extends Error {
  /** Creates the error. */
  constructor(readonly reason: string) {
    super(reason);
  }
}

/** Returns what `work` resolves to. Throws a `SessionError` that begins with `failure` if it is refused. */
export async function orRefuse<T>(failure: string, work: Promise<T>): Promise<T> {
  return await work.catch((error) => {
    throw error instanceof Refusal ? new SessionError(`${failure}: ${error.reason}`, "refused") : error;
  });
}

/** Reviews one message. Returns it after its context. Throws a `Refusal` if it is refused, or if a hook ends or pauses the run. */
export async function reviewMessage(
  engine: EngineRun,
  scope: Scope,
  source: InputSource,
  message: UserMessage,
): Promise<readonly UserMessage[]> {
  try {
    const { status, messages, reason } = await reviewInput(engine, scope, source, [message]);
    if (status === "cancelled") throw new Refusal(reason ?? "it is refused");
    return messages as readonly UserMessage[]; // the point accepts nothing else from these sources
  } catch (error) {
    throw isInterrupt(error) ? new Refusal(error.message) : error;
  }
}

/** Reviews a text as one message, and returns the accepted text. Throws a `Refusal` as `reviewMessage()` does. */
async function acceptedText(engine: EngineRun, scope: Scope, source: InputSource, text: string): Promise<string> {
  const [message] = await reviewMessage(engine, scope, source, user(text));
  return message ? textOf(message) : text;
}

/**
 * Passes a text of others that the model will read, such as that of a skill, through the `input` hooks of a run. Returns the accepted text. Throws a `ToolError`
 * with the reason if a hook refuses it, or ends or pauses the run.
 */
export async function reviewText(scope: Scope, source: InputSource, text: string): Promise<string> {
  try {
    return await acceptedText(engineOf(scope.run), scope, source, text);
  } catch (error) {
    throw error instanceof Refusal ? new ToolError(error.reason) : error;
  }
}

/** Reviews a value as JSON, and returns the accepted value. Throws a `Refusal` also if hooks put a text in its place that is not JSON. */
export async function reviewJson(
  engine: EngineRun,
  scope: Scope,
  source: InputSource,
  value: unknown,
): Promise<unknown> {
  const text = JSON.stringify(value);
  const accepted = await acceptedText(engine, scope, source, text);
  if (accepted === text) return value;
  try {
    return JSON.parse(accepted);
  } catch {
    throw new Refusal(`a hook changed the ${source} to a text that is not JSON`);
  }
}

/** Reviews the texts and the inputs of answers. Returns the answers with the accepted ones. Throws a `Refusal` if one is refused. */
export async function reviewAnswers(
  engine: EngineRun,
  scope: Scope,
  answers: readonly AnsweredQuestion[],
): Promise<readonly AnsweredQuestion[]> {
  const accepted: AnsweredQuestion[] = [];
  for (const each of answers) accepted.push({ ...each, answer: await reviewAnswer(engine, scope, each) });
  return accepted;
}

async function reviewAnswer(engine: EngineRun, scope: Scope, answered: AnsweredQuestion): Promise<PersonAnswer> {
  const { answer } = answered;
  switch (answer.type) {
    case "reply":
      return { ...answer, text: await acceptedText(engine, scope, "reply", answer.text) };
    case "deny":
      if (answer.reason === undefined) return answer;
      return { ...answer, reason: await acceptedText(engine, scope, "reply", answer.reason) };
    case "approve":
      if (editOf(answered) === undefined) return answer; // the input that the person saw
      return { ...answer, input: await reviewJson(engine, scope, "edit", answer.input) };
  }
}
