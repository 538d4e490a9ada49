/**
 * What several answers come to together.
 *
 * @module
 */
import type { Decision, Dialect } from "./dialect.ts";
import type { Output } from "./output.ts";

/** The answer of one hook. */
export interface Answer extends Output {
  /** Its place among the answers, from 0. */
  readonly given: number;
}

/** What hooks said that were asked, in the order of the configuration. */
export type Answers = readonly Answer[];

/** No answer. */
export const none: Answers = [];

/** Why hooks block; nothing where none does. */
export function blockOf(answers: Answers): string | undefined {
  const blocking = answers.filter(({ decision }) => decision === "deny");
  return blocking.length === 0 ? undefined : lines(blocking.map(({ reason }) => reason)) ?? "Blocked by a hook.";
}

/** What is said for the model. */
export function contextOf(answers: Answers): readonly string[] {
  return answers.flatMap(({ specific: { additionalContext } }) => additionalContext ? [additionalContext] : []);
}

/** What is decided about a call, and why. The strictest decision wins, whoever said it and whenever. */
export function decisionOf(
  answers: Answers,
  { decisions }: Dialect,
): { readonly decision: Decision; readonly reason: string | undefined } | undefined {
  const said = answers.flatMap(({ decision, reason, specific }) => {
    const { permissionDecision = decision, permissionDecisionReason = reason } = specific;
    return permissionDecision ? [{ decision: permissionDecision, reason: permissionDecisionReason }] : [];
  });
  const decision = decisions.findLast((each) => said.some(({ decision }) => decision === each));
  if (!decision) return undefined;
  return { decision, reason: lines(said.filter((each) => each.decision === decision).map(({ reason }) => reason)) };
}

/** What the last answer says that says anything: in the order of the configuration, or in that in which they were given. */
export function lastOf<T>(answers: Answers, { last }: Dialect, pick: (answer: Answer) => T | undefined): T | undefined {
  const ordered = last === "given" ? answers.toSorted((a, b) => a.given - b.given) : answers;
  return ordered.map(pick).findLast((picked) => picked !== undefined);
}

/** Texts, a line for each; nothing where there are none. */
export function lines(texts: readonly (string | undefined)[]): string | undefined {
  return texts.filter((text) => text).join("\n") || undefined;
}
