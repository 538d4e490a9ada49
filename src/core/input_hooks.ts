/**
 * The `input` hooks: every text from outside that the model reads passes them once, before it is accepted. It is a prompt with its history, a message to a run
 * while it works, a person's answer, or another text of a client. A hook may refuse it.
 *
 * @module
 */
import { reportFatal } from "./error_hooks.ts";
import { cancelled, refused } from "./hook_answers.ts";
import { isInterrupt } from "./interrupt.ts";
import { editOf } from "./persons_answers.ts";
import type { InputChange, InputContext, InputResult, InputSource } from "./points.ts";
import { type HookAnswer, type PointPolicy, policyOf } from "./policy.ts";
import type { AnsweredQuestion, Move, PositionAt } from "./position.ts";
import { engineOf, type EngineRun, type StepScope } from "./run.ts";
import type { Scope } from "./scope.ts";
import { SessionError } from "./session.ts";
import { ToolError } from "./tool.ts";
import { contextMessages, inputContext } from "./transcript.ts";
import { type Message, textOf, user, type UserMessage } from "../protocol/message.ts";
import type { PersonAnswer } from "../protocol/question.ts";

const inputPolicy: PointPolicy<InputContext, InputChange, InputResult, undefined> = /* @__PURE__ */ policyOf("input", {
  core({ messages, context }) {
    const added = contextMessages(context, inputContext);
    return Promise.resolve({ status: "accepted", messages: added.length === 0 ? messages : [...added, ...messages] });
  },
  derive(inner, _, __, name) {
    validate(inner, name);
    return inner;
  },
  finalize,
});

/** Throws a `TypeError` if a hook passes messages or context that the source cannot have. */
function validate({ source, messages, context }: InputContext, name: string): void {
  if (source === "history") return; // the transcript is repaired
  const fits = source === "prompt" || source === "steering" || context.length === 0;
  if (fits && messages.length === 1 && messages[0]?.role === "user") return;
  const expected = `expected one user message${fits ? "" : " without context"}`;
  throw new TypeError(`Cannot change the messages of a ${source} at input in "${name}": ${expected}`);
}

/** A refusal stands. An acceptance is that of the inner layers, so no hook can bypass a guard inside it. */
function finalize(
  { name, returned, called, below, runInner }: HookAnswer<InputContext, InputResult, undefined>,
): InputResult | Promise<InputResult> {
  if (returned?.status === "cancelled") return returned;
  if (returned?.status !== "accepted") {
    throw new TypeError(`Cannot leave input: "${name}" returned neither the result of next() nor refused()`);
  }
  return called ? below ?? refused("A guard failed.") : runInner();
}

/** Runs the `input` onion. */
export async function reviewInput(
  engine: EngineRun,
  { run, signal, emit, vars }: Scope,
  source: InputSource,
  messages: readonly Message[],
): Promise<InputResult> {
  const ctx: InputContext = { run, signal, emit, vars, source, messages, context: [] };
  const result = await engine.definition.onions.input(ctx, undefined, inputPolicy);
  return result.status === "accepted" ? result : refused(result.reason ?? "");
}

/** Reviews the history and the prompt of a new run. */
export async function reviewIncoming(scope: StepScope, position: PositionAt<"incoming">): Promise<Move> {
  const { messages } = position;
  const accepted: Message[] = [];
  const parts = [["history", messages.slice(0, -1)], ["prompt", messages.slice(-1)]] as const;
  for (const [source, part] of parts) {
    if (part.length === 0) continue;
    const result = await reportFatal(scope, "input", reviewInput(scope.engine, scope, source, part));
    scope.engine.exit.check(); // a hook that swallowed an interrupt changes nothing
    if (result.status === "cancelled") return refusal(result);
    accepted.push(...result.messages);
  }
  return { to: { ...position, at: "prompt", messages: accepted } };
}

function refusal({ reason = "" }: InputResult): Move {
  return { exit: { status: "refused", reason, answer: cancelled(reason), rollback: true } };
}

// Texts that reach a run outside of its steps: steering, a person's answers, and other texts of a client.

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
