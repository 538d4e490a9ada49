/**
 * Where every call arrives, whoever answered it: decide, park, wait until it may go out.
 *
 * @module
 */
import type { Decider, Decision } from "../protocol/event.ts";
import type { Question } from "../protocol/question.ts";
import type { ToolResult } from "../protocol/message.ts";
import { denied, skipped, text } from "./answers.ts";
import { approve } from "./approval.ts";
import { canonicalJson } from "./canonical.ts";
import type { Entry, Step } from "./entry.ts";
import { lawOf } from "./law.ts";
import type { Law, Layer, Review } from "./onion.ts";
import type { Approval, ApprovalContext, ToolChange, ToolContext } from "./points.ts";
import { prepare, resultBy } from "./prepare.ts";
import { answerSchema, suggestions } from "./question.ts";

const mostEdits = 3;

/** The law of `tool`. */
export const toolLaw: Law<ToolContext, ToolChange, ToolResult, Entry> = lawOf("tool", ["input", "name"], {
  hint: ": a retry belongs at execute",
  late: true,
  derive: (beneath, above, { live }) =>
    beneath.name === above.name ? beneath : { ...beneath, tool: live.tools.get(beneath.name) },
  seal({ name, returned, ctx, own }: Layer<ToolContext, ToolResult, Entry>) {
    resultBy(name, "tool", returned);
    const { step } = own;
    if (!step) return arrive(ctx, own, undefined, returned); // answered from above: asked all the same
    return step.type === "answer" && step.result.status === "denied" && returned.status !== "denied"
      ? { ...returned, status: "denied" }
      : returned;
  },
});

/** The core of `tool`, and of every hook that answers instead. */
export async function arrive(
  ctx: ToolContext,
  entry: Entry,
  review?: Review<ToolResult>,
  proposed?: ToolResult,
): Promise<ToolResult> {
  entry.step = await decide(ctx, entry, proposed);
  entry.parked.resolve();
  const result = await entry.gate.promise;
  return review ? review(result) : result;
}

async function decide(ctx: ToolContext, entry: Entry, proposed: ToolResult | undefined): Promise<Step> {
  const { live, call, turn } = entry;
  const { run, signal, emit, vars, tool, name } = ctx;
  if (proposed?.status === "denied") return decided("deny", proposed, "policy");
  if (entry.over) return { type: "answer", result: skipped(`Not run: this run may make ${live.limits.calls} calls.`) };
  let { input } = ctx;
  for (let edits = 0; edits <= mostEdits; edits++) {
    const checked = prepare(live, ctx, input);
    const prepared = checked instanceof Promise ? await checked : checked;
    if (!proposed && "wrong" in prepared) return { type: "answer", result: { ...prepared.wrong, input } };
    entry.parsed = "wrong" in prepared ? undefined : prepared;
    const question: ApprovalContext = {
      run,
      signal,
      emit,
      vars,
      call,
      tool,
      name,
      input,
      turn,
      ...(proposed && { proposed }),
    };
    const verdict = await approve(question, entry);
    if (verdict.type === "deny") return decided("deny", denied(verdict.reason || "It is not allowed."), "policy");
    const person = heard(input); // a no, a reply and a change count even where nobody asks any more
    if (person?.type === "deny") {
      const { reason } = person;
      return decided("deny", denied(reason ? `A person said no: ${reason}` : "A person said no."), "person");
    }
    if (person?.type === "reply") return decided("allow", { ...text(person.text), input }, "person");
    const open = verdict.type === "ask" && !person;
    const ruled = open && isRuled(input);
    if (open && !ruled) return asked(verdict, input);
    const edit = (verdict.type === "allow" ? verdict.input : undefined) ?? person?.input;
    if (edit !== undefined && canonicalJson(edit) !== canonicalJson(input)) {
      if (edit === person?.input) entry.note = `A person changed the input of ${name} to ${JSON.stringify(edit)}.`;
      input = edit;
      continue;
    }
    const by = person ? "person" : ruled ? "rule" : "policy";
    if (proposed) return decided("allow", { ...proposed, input }, by);
    if (!tool || "wrong" in prepared) break;
    announce("allow", by);
    return { type: "execute", tool, input: prepared.input, raw: input, scope: { run, signal, emit, vars } };
  }
  return decided("deny", denied("The input was changed too often."), "policy");

  /** A person's answer counts for the tool and the input they saw, and for the input they made of it. */
  function heard(input: unknown) {
    const { answered } = entry;
    if (answered.length === 0) return undefined; // as most are, which then cost nothing
    const seen = canonicalJson(input);
    return answered.findLast(({ question, answer }) => {
      const theirs = answer.type === "approve" && answer.input !== undefined && seen === canonicalJson(answer.input);
      return question.tool === name && (theirs || seen === canonicalJson(question.input));
    })?.answer;
  }

  /** Whether a person has allowed it for good. */
  function isRuled(input: unknown): boolean {
    const path = canonicalJson([...live.path, live.blueprint.name].slice(1));
    return live.rules.some((rule) =>
      rule.tool === name && canonicalJson(rule.path ?? []) === path &&
      (rule.input === undefined || canonicalJson(rule.input) === canonicalJson(input))
    );
  }

  function asked({ type: _, ...asked }: Extract<Approval, { type: "ask" }>, input: unknown): Step {
    const question: Question = { callId: call.id, tool: name, input, questions: asked.questions };
    live.events.announce(emit, { type: "approval.asked", turn, call: call.id, ...question });
    const schema = answerSchema(tool?.definition.schema);
    return { type: "ask", question: { ...question, schema, suggestions, ...asked } };
  }

  function decided(decision: Decision, result: ToolResult, by: Decider): Step {
    announce(decision, by, decision === "deny" ? result : undefined);
    return { type: "answer", result };
  }

  function announce(decision: Decision, by: Decider, result?: ToolResult): void {
    const [part] = result?.parts ?? [];
    const reason = part?.type === "text" ? part.text : undefined;
    live.events.announce(emit, {
      type: "approval.decided",
      turn,
      call: call.id,
      decision,
      by,
      ...(reason !== undefined && { reason }),
    });
  }
}
