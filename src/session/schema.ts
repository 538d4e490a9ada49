/**
 * Schemas of SQL databases as text.
 *
 * @module
 */

/** Joins lists of statements to one text. Each list is an argument: bundlers keep a spread, even in an argument of a call with a `@__PURE__` comment. */
export function schemaText(...statements: readonly (readonly string[])[]): string {
  return statements.flat().map((statement) => `${statement};\n`).join("");
}
