/**
 * A person who answers immediately, so that no run pauses.
 *
 * @module
 */
import { type Middleware, state, text, when } from "@jizai/jizai";
import { human } from "@jizai/jizai/middleware/human";
import type { Person, Vars } from "./person.ts";

/** Makes `person` answer immediately if `vars` says so, also in subagents: with `human()`, and with hooks for the answers that it does not support. */
export function answering(person: Person): readonly Middleware<Vars>[] {
  const asked = state("answering.asked", (): Readonly<Record<string, unknown>> => ({}));
  const edited = state("answering.edited", (): Readonly<Record<string, readonly [tool: string, edit: string]>> => ({}));

  /** Replies in place of a tool, and tells the model about edits. */
  const beside: Middleware<Vars> = {
    name: "beside",
    async tool(ctx, next) {
      const result = await next();
      const { [ctx.call.id]: changed } = edited.get(ctx);
      if (!changed) return result;
      const note = `A person changed the input of ${changed[0]} to ${changed[1]}.`;
      return { ...result, context: [...result.context ?? [], note] };
    },
    execute(ctx, next) {
      const { call: { id }, tool: { name }, input } = ctx;
      const same = JSON.stringify(asked.get(ctx)[id]) === JSON.stringify(input);
      const answer = same ? person({ callId: id, tool: name, input, questions: [] }) : undefined;
      return answer?.type === "reply" ? Promise.resolve(text(answer.text)) : next();
    },
  };

  /** Records the questions. */
  const beneath: Middleware<Vars> = {
    name: "beneath",
    async approval(ctx, next) {
      const verdict = await next();
      const { call: { id: callId }, name: tool, input } = ctx;
      if (verdict.type !== "ask" || edited.get(ctx)[callId]?.[1] === JSON.stringify(input)) return verdict;
      asked.update(ctx, (asked) => ({ ...asked, [callId]: input }));
      const answer = person({ callId, tool, input, questions: [] });
      if (answer.type !== "approve" || answer.input === undefined) return verdict;
      const edit = JSON.stringify(answer.input);
      if (edit !== JSON.stringify(input)) edited.update(ctx, (edited) => ({ ...edited, [callId]: [tool, edit] }));
      return verdict;
    },
  };

  const own = new Map<string, string>();
  const asks = human(({ callId, tool, input }) => {
    if (own.get(callId) === JSON.stringify(input)) return true; // the input of the person's own edit
    const answer = person({ callId, tool, input, questions: [] });
    if (answer.type === "reply") return true;
    if (answer.type === "deny") {
      return { allow: false, reason: answer.reason ? `A person said no: ${answer.reason}` : "A person said no." };
    }
    if (answer.input !== undefined) own.set(callId, JSON.stringify(answer.input));
    return { allow: true, input: answer.input };
  });

  return [beside, asks, beneath].map((each) => when<Vars>(({ vars }) => vars.atOnce, { ...each, inherit: true }));
}
