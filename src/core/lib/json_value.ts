/**
 * Checks that values from application code can be stored and sent as JSON.
 *
 * @module
 */

/** The deepest nesting that is accepted, as for JSON from clients. */
const maxDepth = 100;

/** Throws a `TypeError` that starts with `operation` if `value` cannot be stored as JSON. It does not call `toJSON()`. */
export function expectJson(operation: string, value: unknown): void {
  if (!isJson(value, maxDepth)) {
    throw new TypeError(`${operation}: it has a BigInt, contains itself, or is nested deeper than ${maxDepth} levels`);
  }
}

function isJson(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return typeof value !== "bigint";
  return levels > 0 && Object.values(value).every((inner) => isJson(inner, levels - 1));
}
