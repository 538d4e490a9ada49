/**
 * Canonical JSON: one text for one JSON value, whatever the order of its keys.
 *
 * @module
 */

/** Returns `value` as JSON with sorted keys. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(
    value,
    (_, part: unknown) =>
      typeof part === "object" && part !== null && !Array.isArray(part)
        ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => a < b ? -1 : 1))
        : part,
  ) ?? "undefined";
}
