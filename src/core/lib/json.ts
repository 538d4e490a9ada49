/**
 * JSON values: the check that a value can be stored, canonical text, changes of leaves, and hashes.
 *
 * @module
 */

// Checks that values from application code can be stored and sent as JSON.

/** The deepest nesting that is accepted, as for JSON from clients. */
const maxDepth = 100;

/** The parts of the check that not every value needs. */
interface JsonCheck {
  /** The deepest nesting. Default: 100. */
  readonly levels?: number;
  /** True if `toJSON()` is called. Default: true. */
  readonly convert?: boolean;
  /** True if an object whose content JSON leaves out, such as a Map, is refused. Default: false. */
  readonly whole?: boolean;
}

/** Throws a `TypeError` that starts with `operation` if `value` cannot be stored as JSON. */
export function expectJson(operation: string, value: unknown, check: JsonCheck = {}): void {
  const found = obstacle(value, check.levels ?? maxDepth, check);
  if (!found) return;
  ignoreRejections(value);
  throw new TypeError(`${operation}: it ${found.why}`, { cause: found.cause });
}

/** Returns a plain copy of a value that was checked with `expectJson()`: no getter and no proxy is read again. Throws a `TypeError` that starts with `operation`. */
export function plainCopy(operation: string, value: unknown): unknown {
  try {
    return copyOf(value, maxDepth);
  } catch (cause) {
    throw new TypeError(`${operation}: it has a getter or toJSON() that throws`, { cause });
  }
}

function copyOf(value: unknown, levels: number): unknown {
  if (typeof value === "bigint" || levels < 0) throw new TypeError("it has changed");
  if (typeof value === "function") return undefined; // as in JSON
  if (typeof value !== "object" || value === null) return value;
  const { toJSON }: { toJSON?: unknown } = value;
  if (typeof toJSON === "function") return copyOf(toJSON.call(value), levels - 1);
  if (Array.isArray(value)) return value.map((each) => copyOf(each, levels - 1));
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, copyOf(each, levels - 1)]));
}

/** A reason why a value is not JSON. */
interface Obstacle {
  readonly why: string;
  readonly cause?: unknown;
}

function obstacle(value: unknown, levels: number, check: JsonCheck): Obstacle | undefined {
  if (typeof value === "bigint") return { why: "has a BigInt" };
  const isFunction = typeof value === "function"; // JSON leaves it out, unless it has a toJSON()
  if (!isFunction && (typeof value !== "object" || value === null)) return undefined;
  if (levels === 0) return { why: `contains itself, or is nested deeper than ${check.levels ?? maxDepth} levels` };
  try {
    const { then, toJSON }: { then?: unknown; toJSON?: unknown } = value; // reading a field is twice as fast as `in`
    if (typeof then === "function" && !isFunction) return { why: "has a promise or another thenable; await it" };
    if (typeof toJSON === "function") {
      return check.convert === false ? undefined : obstacle(toJSON.call(value), levels - 1, check);
    }
    if (isFunction) return undefined;
    const fields = Object.values(value);
    if (check.whole && fields.length === 0 && !isEmpty(value) && JSON.stringify(value) === "{}") {
      return { why: `has a value of type ${typeOf(value)}, which is {} as JSON; expected plain values` };
    }
    for (const inner of fields) {
      const found = obstacle(inner, levels - 1, check);
      if (found) return found;
    }
  } catch (cause) {
    return { why: "has a getter or toJSON() that throws", cause };
  }
  return undefined;
}

/** The most values in which a refused value is searched for promises. */
const maxSearched = 1_000;

/** Throws a `TypeError` that starts with `operation` if `value` is not the same once it was written as JSON. A member that is undefined may be left out. */
export function expectSameAsJson(operation: string, value: unknown): void {
  expectJson(operation, value);
  const found = changedType(value);
  if (found) throw new TypeError(`${operation}: it has ${found}, which JSON does not keep; expected plain values`);
}

/** Returns a value that JSON changes, by its type, if there is one. */
function changedType(value: unknown): string | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `the number ${value}`;
  if (typeof value !== "object" || value === null) {
    return typeof value === "function" || typeof value === "symbol" ? `a ${typeof value}` : undefined;
  }
  const isRow = Object.getPrototypeOf(value) === null; // as some databases return them
  if (!isPlain(value) && !isRow) return `a value of type ${Object(value).constructor?.name ?? typeOf(value)}`;
  for (const inner of Object.values(value)) {
    const found = inner === undefined && Array.isArray(value) ? "undefined in a list" : changedType(inner);
    if (found) return found;
  }
  return undefined;
}

/** Keeps promises in the plain objects and arrays of a refused value from ending the process when they reject: nothing awaits them. */
export function ignoreRejections(value: unknown): void {
  const found = new Set([value]); // grows while it is read
  for (const each of found) {
    try {
      if (each instanceof Promise) each.catch(() => {});
      else if (found.size < maxSearched && isPlain(each)) {
        for (const inner of Object.values(Object.getOwnPropertyDescriptors(each))) found.add(inner.value);
      }
    } catch {
      continue; // a proxy has thrown: it cannot be searched
    }
  }
}

/** Whether a value is an array or an object that is of no class. */
function isPlain(value: unknown): value is object {
  return Array.isArray(value) || (typeOf(value) === "Object" && Object.getPrototypeOf(value) === Object.prototype);
}

/** Whether an object without fields has no other content. */
function isEmpty(value: object): boolean {
  return typeOf(value) === "Object" || Array.isArray(value) || ArrayBuffer.isView(value);
}

/** Returns the built-in type of a value, such as "Null", "String" or "Map", and "Object" for objects of other classes. */
export function typeOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice("[object ".length, -1);
}

// Canonical JSON: one text for one JSON value, whatever the order of its keys.

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

// Changing the strings and other leaves of a JSON value.

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

// Hashes of texts and bytes.

/** Returns the SHA-256 of bytes, or of a text in UTF-8, in hexadecimal digits. */
export async function hashOf(data: string | Uint8Array<ArrayBuffer>): Promise<string> {
  const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
