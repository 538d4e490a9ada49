/**
 * A person who answers every question, and equal questions in the same way.
 *
 * @module
 */
import type { PersonAnswer, Question } from "@jizai/jizai";
import { hashOf, seeded } from "../seeded.ts";

/** The vars of a random agent. */
export interface Vars {
  /** Whether the person answers immediately. Otherwise the run pauses. */
  readonly atOnce: boolean;
  /** Passes some time. */
  readonly linger: () => Promise<void>;
}

/** Answers a question. */
export type Person = (question: Question) => PersonAnswer;

/** The reply to a question about the run. */
export const word = "Indigo";

/** Whether a person is asked again because a hook has changed the input that they wrote. */
export function isAboutEdit({ questions }: Pick<Question, "questions">): boolean {
  return questions.some((question) => question.startsWith("A hook changed your input"));
}

/** Creates the person of `seed`. A person who reads that a hook has changed their input accepts it. */
export function person(seed: number): Person {
  return ({ callId, tool, input, questions }) => {
    if (callId === undefined || tool === undefined) {
      return { type: "reply", text: word, ...(callId !== undefined && { callId }) };
    }
    const { one, below } = seeded(hashOf(`${seed} ${tool} ${JSON.stringify(input)}`));
    const trusted = seeded(hashOf(`${seed} ${tool}`)).below(4) === 0;
    if (trusted) return { callId, type: "approve", always: "tool" };
    switch (one(["approve", "approve", "edit", "always", "deny", "refuse", "reply"])) {
      case "edit":
        return {
          callId,
          type: "approve",
          ...(tool !== "helper" && !isAboutEdit({ questions }) && { input: { n: below(20) } }),
        };
      case "always":
        return { callId, type: "approve", always: "input" };
      case "deny":
        return { callId, type: "deny" };
      case "refuse":
        return { callId, type: "deny", reason: "Not today." };
      case "reply": // questions of hooks are approved or denied
        return tool === "read" ? { callId, type: "approve" } : { callId, type: "reply", text: "I did it myself." };
      default:
        return { callId, type: "approve" };
    }
  };
}
