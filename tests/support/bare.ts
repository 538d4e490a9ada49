/**
 * Questions without what may be answered to any of their kind.
 *
 * @module
 */
import type { Question } from "@jizai/jizai";

/** What is asked, and about what. */
export function bare(questions: readonly Question[]): readonly Question[] {
  return questions.map(({ schema: _, suggestions: __, ...question }) => question);
}
