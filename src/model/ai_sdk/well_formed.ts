/**
 * Replaces lone surrogates, which providers reject.
 *
 * @module
 */

/** Copies plain data with every lone surrogate replaced. Instances of classes, such as URLs, stay the same. */
export function wellFormed<T>(value: T): T;
export function wellFormed(value: unknown): unknown {
  if (typeof value === "string") return value.isWellFormed() ? value : value.toWellFormed();
  if (Array.isArray(value)) return value.map((each) => wellFormed(each));
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, wellFormed(each)]));
}
