/**
 * JSON of unknown shape.
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

/** Parses JSON text. Returns a text that is not JSON as it is, and an empty object for an empty text. */
export function jsonOrText(text: unknown): unknown {
  try {
    return JSON.parse(typeof text === "string" && text !== "" ? text : "{}");
  } catch {
    return text;
  }
}
