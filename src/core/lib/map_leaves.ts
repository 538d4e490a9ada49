/**
 * Changing the strings and other leaves of a JSON value.
 *
 * @module
 */

/** Applies `change` to every string in a JSON value; keys stay. Returns the same value if nothing changed. */
export function mapTexts<T>(value: T, change: (text: string) => string): T {
  return mapLeaves(value, (leaf) => typeof leaf === "string" ? change(leaf) : leaf) as T; // only strings have changed
}

/** Applies `change` to every leaf of a JSON value, and `rename` to every key of its objects. Returns the same value if nothing changed. */
export function mapLeaves(
  value: unknown,
  change: (leaf: unknown) => unknown,
  rename: (key: string) => string = (key) => key,
): unknown {
  if (typeof value !== "object" || value === null) return change(value);
  if (Array.isArray(value)) {
    const items = value.map((each) => mapLeaves(each, change, rename));
    return items.every((each, index) => Object.is(each, value[index])) ? value : items;
  }
  let changed = false;
  const entries = Object.entries(value).map(([key, each]) => {
    const entry = [rename(key), mapLeaves(each, change, rename)] as const;
    changed ||= entry[0] !== key || !Object.is(entry[1], each);
    return entry;
  });
  return changed ? Object.fromEntries(entries) : value;
}
