/**
 * A person's decision about a call: an answer to its question, or a rule.
 *
 * @module
 */
import type { Call } from "../../protocol/part.ts";
import type { PersonAnswer } from "../../protocol/question.ts";
import { canonicalJson } from "../lib/canonical_json.ts";
import type { StepScope } from "../run/run.ts";

/** A call, and the run that knows the answers and the rules. */
interface CallOfRun {
  readonly scope: StepScope;
  readonly record: { readonly call: Call };
}

/** Returns a person's answer. It counts for the tool and the input that they saw, and for the input that they edited. */
export function personsAnswer(
  { scope: { engine: { loop } }, record: { call } }: CallOfRun,
  name: string,
  input: unknown,
): PersonAnswer | undefined {
  if (loop.answers.length === 0) return undefined;
  const current = canonicalJson(input);
  return loop.answers.findLast(({ question, answer }) => {
    if (answer.callId !== call.id || question.tool !== name) return false;
    const edited = answer.type === "approve" && answer.input !== undefined && current === canonicalJson(answer.input);
    return edited || current === canonicalJson(question.input);
  })?.answer;
}

/** Returns true if a person always allows such calls. */
export function isRuled(
  { scope: { engine: { toolPath, rules } } }: Pick<CallOfRun, "scope">,
  name: string,
  input: unknown,
): boolean {
  const own = canonicalJson(toolPath);
  return rules.some((rule) =>
    rule.tool === name && canonicalJson(rule.path ?? []) === own &&
    (rule.input === undefined || canonicalJson(rule.input) === canonicalJson(input))
  );
}
