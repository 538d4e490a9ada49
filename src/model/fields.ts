/**
 * Fields: JSON of which nothing is known yet.
 *
 * @module
 */

/** An object, by the names of its fields. */
export interface Fields {
  readonly [name: string]: unknown;
}

/** Whether `value` is an object: no list, and not nothing. */
export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `value` where it is text, and else none. */
export function textIn(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** `value` where it is a number, and else 0. */
export function numberIn(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
