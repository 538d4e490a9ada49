/**
 * Schemas of SQL databases as text.
 *
 * @module
 */

/** Joins statements to one text. Call it with a `@__PURE__` comment: a program that does not print the schema does not contain it then. */
export function schemaText(...statements: readonly (readonly string[])[]): string {
  return statements.flat().map((statement) => `${statement};\n`).join("");
}
