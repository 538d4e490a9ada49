/**
 * Schemas of SQL databases as text, and the versions in their columns.
 *
 * @module
 */
import type { Mark } from "../core/store.ts";

/** Joins lists of statements to one text. Each list is an argument: bundlers keep a spread, even in an argument of a call with a `@__PURE__` comment. */
export function schemaText(...statements: readonly (readonly string[])[]): string {
  return statements.flat().map((statement) => `${statement};\n`).join("");
}

/**
 * Returns the version column of a session with this mark. It is negative, apart from sessions of version 0.1.0 of the package, which have no holder: a process of that
 * version writes a row only if it has read its version.
 */
export function versionOf({ holder, n }: Mark): number {
  return holder === "" ? n : -n;
}
