/**
 * Asks a person in the same process.
 *
 * @module
 */
import { allow, type Approval, type Call, deny, type Middleware, type Question, state } from "../../mod.ts";
import { cancellationOf, canonicalJson, Semaphore } from "../../src/core/kit.ts";

/** What a person is asked about one call. */
export interface CallQuestion extends Question {
  /** The call's id. */
  readonly callId: string;
  /** The tool that would run. */
  readonly tool: string;
  /** What it would run with. */
  readonly input: unknown;
  /** The call as the model made it. */
  readonly call: Call;
}

/** What a person says: yes or no; why not, for the model; or yes, with this input instead. */
export type PersonSays = boolean | {
  readonly allow: boolean;
  readonly reason?: string;
  readonly input?: unknown;
};

/** Asks a person. `signal` aborts when nobody needs the answer any more; the next question waits until this one has settled. */
export type AskPerson = (
  question: CallQuestion,
  options: { readonly signal: AbortSignal },
) => PersonSays | Promise<PersonSays>;

/**
 * Answers what middleware after it and tools ask, by asking a person: one question at a time, over all runs.
 * An input that the person changed is checked again by everyone, but the person is not asked the same about it again.
 * Where `ask` throws, or answers too late, the call is denied.
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
  const person = new Semaphore(1); // there is one, however many runs there are
  const edited = state("human.edited", () => "");
  return {
    name: "human",
    async approval(ctx, next) {
      const beneath = await next();
      if (beneath.type !== "ask") return beneath;
      const { call, name: tool, input, signal } = ctx;
      const { questions } = beneath;
      const about = (input: unknown) => canonicalJson([call.id, tool, input, questions]);
      if (edited.get(ctx) === about(input)) return allow();
      await person.take(cancellationOf(signal));
      try {
        signal.throwIfAborted();
        const says = await ask({ callId: call.id, tool, input, questions, call }, { signal });
        signal.throwIfAborted();
        const answer = answerOf(says);
        if (answer.type === "allow" && answer.input !== undefined) edited.set(ctx, about(answer.input));
        return answer;
      } finally {
        person.give();
      }
    },
  };
}

/** Only `true` allows. */
function answerOf(says: PersonSays): Approval {
  const { allow: allowed, reason = "A person said no.", input } = typeof says === "boolean" ? { allow: says } : says;
  return allowed === true ? allow({ input }) : deny(reason);
}
