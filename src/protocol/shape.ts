/**
 * Shapes: parsers for JSON from outside. A shape checks each field it names, drops every other field, and reports the first field that is wrong.
 *
 * `src` validates with shapes, because Zod would add 25 KB (gzip) to every bundle. Middleware is imported file by file and validates with Zod.
 * Shapes are in this room, which otherwise holds data types, because every other room reads JSON from outside and may import this room only.
 *
 * Declare a shape at the top level of a module as `const order = lazy(() => object({ id: string }))`, with a `@__PURE__` comment before `lazy`: bundlers then
 * leave out the shapes of modules that are not used.
 *
 * @module
 */
import { brand } from "./brand.ts";
import type { Json } from "./part.ts";

// The check of the names of options, which every factory and the client share.

/** Throws a `TypeError` that starts with `operation` if `options` is not a plain object, or has a name that is not in `known`. Names of the engine start with "~". */
export function expectNames(operation: string, options: object, known: readonly string[]): void {
  const kind = Object.prototype.toString.call(options).slice("[object ".length, -1); // not the value, which may be secret
  if (kind !== "Object" && kind !== "Module") {
    throw new TypeError(`${operation}: got ${kind}; expected an object with ${known.join(", ")}`);
  }
  const isStray = ([name, value]: [string, unknown]) =>
    value !== undefined && !known.includes(name) && !name.startsWith("~");
  const [stray] = Object.entries(options).find(isStray) ?? [];
  if (stray !== undefined) {
    throw new TypeError(`${operation}: there is no option "${stray}"; expected one of ${known.join(", ")}`);
  }
}

// JSON of unknown shape.

/** An object whose fields are unknown. */
export interface UnknownObject {
  /** The value of a field. */
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

// Shapes, and the parsers that are built of them.

/** A value from outside that does not have the expected shape. The message contains nothing secret and may be sent to the client. */
export class ShapeError extends Error {
  /** The mark of the class, which its copies share. */
  static readonly "~brand": symbol = /* @__PURE__ */ brand(this, "ShapeError");

  /** The name of the class. */
  override readonly name = "ShapeError";

  /** Takes the message and the path of the wrong field, such as `messages.0.role`; no path if the whole body is wrong. */
  constructor(message: string, readonly field: string | undefined) {
    super(message);
  }
}

/** Parses `value`. Throws a `ShapeError` that names `path`, the place of the value in the body, if it does not have this shape. */
export type Shape<T> = (value: unknown, path: string) => T;

/** One shape for each field of `T`, including the optional fields. */
export type Fields<T> = { readonly [K in keyof T]-?: Shape<T[K]> };

/** A member of a union that the field `K` distinguishes from the other members. */
export type Tagged<K extends string> = { readonly [key in K]: string };

/** The fields of each member of the union `T`, by the value of the field `K`. */
export type Variants<K extends string, T extends Tagged<K>> = {
  readonly [Tag in T[K]]: Fields<Omit<Extract<T, { readonly [key in K]: Tag }>, K>>;
};

/** The deepest nesting that `json` and `jsonObject` accept. Deeper values would overflow the stack of code that walks or serializes them. */
const maxDepth = 100;

/** Creates the error for a value at `path` that is not what was expected. */
export function invalid(path: string, expected: string): ShapeError {
  const place = path === "" ? "the body" : path;
  return new ShapeError(`Cannot read ${place}: expected ${expected}`, path === "" ? undefined : path);
}

/** Parses a string. */
export function string(value: unknown, path: string): string {
  if (typeof value !== "string") throw invalid(path, "a string");
  return value;
}

/**
 * True if every database keeps the text as it is, so that it can be an id. Postgres refuses NUL, and UTF-8 turns each lone surrogate into U+FFFD: ids with them
 * would fail, or become one id.
 */
export function isId(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0") && !text.includes("\ufffd");
}

/** The expected value in place of a text that is no id. */
export const expectedId = "an id without NUL, lone surrogates and U+FFFD";

/** Parses an id. */
export function id(value: unknown, path: string): string {
  const text = string(value, path);
  if (!isId(text)) throw invalid(path, expectedId);
  return text;
}

/** Parses an integer of 0 or more. */
export function count(value: unknown, path: string): number {
  if (!Number.isSafeInteger(value) || Number(value) < 0) throw invalid(path, "an integer of 0 or more");
  return Number(value);
}

/** Parses a boolean. */
export function boolean(value: unknown, path: string): boolean {
  if (typeof value !== "boolean") throw invalid(path, "true or false");
  return value;
}

/** Parses a JSON value, nested at most 100 levels deep. */
export function json(value: unknown, path: string): Json {
  if (value === undefined) throw invalid(path, "a value");
  if (!isNestedWithin(value, maxDepth)) throw invalid(path, `at most ${maxDepth} levels of nesting`);
  return value as Json; // shapes parse what JSON.parse() returned
}

/** Parses an object of JSON values, nested at most 100 levels deep. */
export function jsonObject(value: unknown, path: string): { readonly [key: string]: Json } {
  if (!isObject(value)) throw invalid(path, "an object");
  json(value, path);
  return value as { readonly [key: string]: Json }; // as above
}

/** Parses one of `words`. */
export function oneOf<T extends string>(...words: readonly T[]): Shape<T> {
  return (value, path) => {
    const found = words.find((word) => word === value);
    if (found === undefined) throw invalid(path, `one of ${words.map((word) => `"${word}"`).join(", ")}`);
    return found;
  };
}

/** Parses a value that may be missing. */
export function optional<T>(shape: Shape<T>): Shape<T | undefined> {
  return (value, path) => value === undefined ? undefined : shape(value, path);
}

/** Parses an array whose items all have this shape. */
export function array<T>(item: Shape<T>): Shape<readonly T[]> {
  return (value, path) => {
    if (!Array.isArray(value)) throw invalid(path, "an array");
    return value.map((each, index) => item(each, join(path, index)));
  };
}

/** Parses an object with these fields. */
export function object<T extends object>(fields: Fields<T>): Shape<T> {
  const shapes = Object.entries<Shape<unknown>>(fields);
  return (value, path) => {
    if (!isObject(value)) throw invalid(path, "an object");
    const parsed = shapes.map(([key, shape]) => [key, shape(value[key], join(path, key))] as const);
    return Object.fromEntries(parsed.filter(([, field]) => field !== undefined)) as T; // every field has its shape
  };
}

/** Parses a union of objects that differ in the field `key`. */
export function variant<K extends string, T extends Tagged<K>>(key: K, variants: Variants<K, T>): Shape<T> {
  const shapes = new Map(Object.entries<Fields<object>>(variants).map(([tag, fields]) => [tag, object(fields)]));
  const tags = object<Tagged<string>>({ [key]: oneOf(...shapes.keys()) });
  return (value, path) => {
    const tag = tags(value, path);
    return { ...tag, ...shapes.get(tag[key] ?? "")?.(value, path) } as T; // the tag selects the fields of its variant
  };
}

/** Builds a shape when it is used first, so that a module can declare it at no cost. */
export function lazy<T>(build: () => Shape<T>): Shape<T> {
  let shape: Shape<T> | undefined;
  return (value, path) => (shape ??= build())(value, path);
}

function isNestedWithin(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return levels > 0 && Object.values(value).every((inner) => isNestedWithin(inner, levels - 1));
}

function join(path: string, key: string | number): string {
  return path === "" ? String(key) : `${path}.${key}`;
}
