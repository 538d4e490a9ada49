/**
 * Questions, reduced to the fields that a test asserts.
 *
 * @module
 */
import type { Question } from "@jizai/jizai";

/** Returns questions without the schema of their answers and without suggestions, which are the same for all questions of a kind. */
export function withoutSchemas(questions: readonly Question[]): readonly Question[] {
  return questions.map(({ schema: _, suggestions: __, ...question }) => question);
}
