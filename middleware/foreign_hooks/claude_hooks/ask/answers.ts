/**
 * Combining the answers of several hooks.
 *
 * @module
 */
import { joinLines } from "../../kit/fields.ts";
import type { Decision, Dialect } from "../config/dialect.ts";
import type { Output } from "./read.ts";

/** The answer of one hook. */
export interface Answer extends Output {
  /** The order of arrival, from 0. */
  readonly given: number;
}

/** The answers of the hooks that ran, in the order of the configuration. */
export type Answers = readonly Answer[];

/** Returns the reasons of the hooks that block; undefined if none does. */
export function blockOf(answers: Answers): string | undefined {
  const blocking = answers.filter(({ decision }) => decision === "deny");
  return blocking.length === 0 ? undefined : joinLines(blocking.map(({ reason }) => reason)) ?? "Blocked by a hook.";
}

/** Returns the texts for the model. */
export function contextOf(answers: Answers): readonly string[] {
  return answers.flatMap(({ specific: { additionalContext } }) => additionalContext ? [additionalContext] : []);
}

/** Returns the strictest decision about a call, with the reasons of the hooks that made it. */
export function decisionOf(
  answers: Answers,
  decisions: readonly Decision[],
): { readonly decision: Decision; readonly reason: string | undefined } | undefined {
  const made = answers.flatMap(({ decision, reason, specific }) => {
    const { permissionDecision = decision, permissionDecisionReason = reason } = specific;
    return permissionDecision ? [{ decision: permissionDecision, reason: permissionDecisionReason }] : [];
  });
  const decision = decisions.findLast((each) => made.some(({ decision }) => decision === each));
  if (!decision) return undefined;
  return { decision, reason: joinLines(made.filter((each) => each.decision === decision).map(({ reason }) => reason)) };
}

/** Returns the last value that `pick` finds: last in the configuration or last to arrive, as the dialect says. */
export function lastOf<T>(answers: Answers, { last }: Dialect, pick: (answer: Answer) => T | undefined): T | undefined {
  const ordered = last === "given" ? answers.toSorted((a, b) => a.given - b.given) : answers;
  return ordered.map(pick).findLast((picked) => picked !== undefined);
}
