/**
 * Asks a person in the same process.
 *
 * @module
 */
import { allow, type Approval, type Call, deny, type Middleware, type Question, state } from "../../mod.ts";
import { cancellationOf, canonicalJson, Semaphore } from "../../src/core/kit.ts";

/** Question about one call. */
export interface CallQuestion extends Question {
  /** Id of the call. */
  readonly callId: string;
  /** Name of the tool. */
  readonly tool: string;
  /** Input that the tool would run with. */
  readonly input: unknown;
  /** The call as the model made it. */
  readonly call: Call;
}

/** Answer of a person: yes or no, or an object. */
export type HumanAnswer = boolean | {
  /** Whether the call may run. */
  readonly allow: boolean;
  /** Reason for a denial, for the model. */
  readonly reason?: string;
  /** Input to use instead. */
  readonly input?: unknown;
};

/** Asks a person. `signal` aborts when the answer is no longer needed. The next question waits until this one has settled. */
export type AskPerson = (
  question: CallQuestion,
  options: { readonly signal: AbortSignal },
) => HumanAnswer | Promise<HumanAnswer>;

/**
 * Answers the questions of later guards and of tools by asking a person, one question at a time over all runs. If the person edits the input, all guards
 * check it again, but the person is not asked the same question again. If a hook changes it, the question contains both forms. If `ask` throws, or answers after the run was stopped, the call is denied.
 *
 * ```ts
 * import { agent, tool } from "@jizai/jizai";
 * import { human } from "@jizai/jizai/middleware/human";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const remove = tool({
 *   name: "remove",
 *   description: "Removes a file",
 *   input: z.object({ path: z.string() }),
 *   ask: true,
 *   execute: ({ path }) => `Removed ${path}`,
 * });
 * const asked: unknown[] = [];
 * const assistant = agent({
 *   model: scripted({ calls: [["remove", { path: "a.txt" }]] }, "It is gone."),
 *   tools: [remove],
 *   use: [human(({ questions, input }) => {
 *     asked.push(...questions, input);
 *     return true;
 *   })],
 * });
 *
 * await assistant.run("Remove a.txt").result;
 * assertEquals(asked, ["Run remove?", { path: "a.txt" }]);
 * ```
 */
export function human(ask: AskPerson): Middleware {
  const person = new Semaphore(1); // shared by all runs
  const edited = state("human.edited", () => ({ key: "", call: "", input: "" }));
  return {
    name: "human",
    async approval(ctx, next) {
      const verdict = await next();
      if (verdict.type !== "ask") return verdict;
      const { call, name: tool, parsed: input, signal } = ctx;
      const { questions } = verdict;
      const keyOf = (input: unknown) => canonicalJson([call.id, tool, input, questions]);
      const edit = edited.get(ctx);
      if (edit.key === keyOf(input)) return allow();
      const forms = edit.call === call.id && edit.input !== canonicalJson(input)
        ? [`A hook changed your input ${edit.input} to ${JSON.stringify(input)}.`]
        : [];
      await person.take(cancellationOf(signal));
      try {
        signal.throwIfAborted();
        const humanAnswer = await ask({ callId: call.id, tool, input, questions: [...questions, ...forms], call }, {
          signal,
        });
        signal.throwIfAborted();
        const answer = answerOf(humanAnswer);
        if (answer.type !== "allow" || answer.input === undefined) return answer;
        if (canonicalJson(answer.input) === canonicalJson(input)) return allow(); // it is what the person saw
        edited.set(ctx, { key: keyOf(answer.input), call: call.id, input: canonicalJson(answer.input) });
        return answer;
      } finally {
        person.give();
      }
    },
  };
}

/** Converts an answer to a verdict. Only `true` allows. */
function answerOf(answer: HumanAnswer): Approval {
  const { allow: allowed, reason = "A person said no.", input } = typeof answer === "boolean"
    ? { allow: answer }
    : answer;
  return allowed === true ? allow({ input }) : deny(reason);
}
