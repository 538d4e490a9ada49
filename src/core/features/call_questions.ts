/**
 * Questions that a tool asks a person while its call runs.
 *
 * @module
 */
import type { OpenCall } from "../call.ts";
import { Pause } from "../interrupt.ts";
import { answerSchema } from "../persons_answers.ts";
import type { ToolExecutionContext } from "../tool.ts";
import type { PersonAnswer, Question, Suggestion } from "../../protocol/question.ts";

const suggestions: readonly Suggestion[] = [{ type: "approve" }, { type: "deny" }];

/** A question that a tool asks while its call runs. Clients show it as a call inside the call of the tool: a person approves it, also with another input, denies it, or replies. */
export interface CallQuestion {
  /** The name of the question, in place of the name of a tool. */
  readonly name: string;
  /** The question to the person. */
  readonly question: string;
  /** The proposed answer: the input of an approval that changes nothing. Default: none. */
  readonly input?: unknown;
  /** The JSON Schema of the input of an approval. Default: every input. */
  readonly schema?: Readonly<Record<string, unknown>>;
}

/** The answers to the questions with which a tool paused its call. */
export interface AnsweredCall {
  /** The JSON that the tool saved. */
  readonly saved: unknown;
  /** The answers, in the order of the questions. Undefined for a question that is not answered yet: ask it again. */
  readonly answers: readonly (PersonAnswer | undefined)[];
}

/** The JSON that is saved with a paused call. */
interface SavedQuestions {
  /** The ids of the questions. */
  readonly ids: readonly string[];
  /** The number of questions that the call has asked. */
  readonly asked: number;
  readonly saved: unknown;
}

/**
 * Returns an interrupt that pauses a call with questions to a person. Throw it from `execute` of the tool. When a person has answered, perhaps in another
 * process, the guards decide again and the tool runs again, with the same input: `answersOf()` returns the answers, and `saved`, which is JSON. Throws a
 * `TypeError` if a question or `saved` is not JSON.
 *
 * ```ts
 * import { agent, tool } from "@jizai/jizai";
 * import { answersOf, askDuring, schemaOf } from "@jizai/jizai/kit";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const book = tool({
 *   name: "book",
 *   description: "Books a room",
 *   input: schemaOf({ type: "object" }),
 *   execute(_, ctx) {
 *     const [answer] = answersOf(ctx)?.answers ?? [];
 *     if (!answer) throw askDuring(ctx, [{ name: "nights", question: "How many nights?", input: 1 }]);
 *     return answer.type === "approve" ? `Booked for ${answer.input ?? 1} nights` : "Not booked";
 *   },
 * });
 * const assistant = agent({ model: scripted({ calls: [["book", {}]] }, "Done."), tools: [book] });
 * const { session, questions } = await assistant.run({ prompt: "Book", session: "s1" }).result;
 * assertEquals(questions.map(({ callId, questions }) => [callId, questions]), [["call_1/1", ["How many nights?"]]]);
 * const answers = [{ callId: "call_1/1", type: "approve", input: 2 }] as const;
 * const { text } = await assistant.resume({ session, answers }).result;
 * assertEquals(text, "Done.");
 * ```
 */
export function askDuring(ctx: ToolExecutionContext, questions: readonly CallQuestion[], saved?: unknown): Pause {
  const { record } = callOf(ctx);
  const asked = savedIn(record)?.asked ?? 0;
  const ids = questions.map((_, index) => `${ctx.callId}/${asked + index + 1}`);
  const path = [record.call.name];
  const sent = questions.map(({ name, question, input = {}, schema }, index): Question => {
    return {
      callId: ids[index]!,
      path,
      tool: name,
      input,
      questions: [question],
      schema: answerSchema(schema),
      suggestions,
    }; // one id for each
  });
  return new Pause(sent, { ids, asked: asked + questions.length, saved });
}

/** Returns the answers to the questions with which the tool paused its call; undefined in a call that has not paused. */
export function answersOf(ctx: ToolExecutionContext): AnsweredCall | undefined {
  const { record, scope: { engine: { loop } } } = callOf(ctx);
  const earlier = savedIn(record);
  if (!earlier) return undefined;
  const answers = earlier.ids.map((id) => loop.answers.find(({ answer }) => answer.callId === id)?.answer);
  return { saved: earlier.saved, answers };
}

function callOf(ctx: ToolExecutionContext): OpenCall {
  return ctx["~call"] as OpenCall; // the engine made the context
}

function savedIn(record: OpenCall["record"]): SavedQuestions | undefined {
  return record.state === "waiting" ? record.saved as SavedQuestions | undefined : undefined; // askDuring() saved it
}
