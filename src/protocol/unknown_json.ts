/**
 * Readers for JSON of unknown shape. A shape (`shape.ts`) rejects a value that is wrong; these replace it with an empty one, because a response of a
 * provider stays useful if a field is missing.
 *
 * @module
 */

/** An object whose fields are unknown. */
export interface UnknownObject {
  readonly [name: string]: unknown;
}

/** Whether `value` is an object and not an array. */
export function isObject(value: unknown): value is UnknownObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns `value` if it is a string, and otherwise an empty string. */
export function stringOrEmpty(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Returns `value` if it is a number, and otherwise 0. */
export function numberOrZero(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

/** Parses JSON text. Returns a text that is not JSON as it is, and an empty object for an empty text. */
export function jsonOrText(text: unknown): unknown {
  try {
    return JSON.parse(stringOrEmpty(text) || "{}");
  } catch {
    return text;
  }
}
