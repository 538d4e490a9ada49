/**
 * Shapes: what JSON from outside has to look like. Read once, field by field; what nobody asked for is left out.
 *
 * @module
 */
import type { Json } from "../protocol/message.ts";

/** What came from outside does not look as it has to. Its message may be told to whoever sent it. */
export class ShapeError extends Error {
  /** The name of the class. */
  override readonly name = "ShapeError";

  /** Says what was expected, and of which field; of none where it is the whole. */
  constructor(message: string, readonly field: string | undefined) {
    super(message);
  }
}

/** Reads a value, or throws a `ShapeError` that names the field `at` which it is wrong. */
export type Shape<T> = (value: unknown, at: string) => T;

/** A shape for every field of `T`, the optional ones too. */
export type Fields<T> = { readonly [K in keyof T]-?: Shape<T[K]> };

/** The fields of each alternative of `T`, which `key` tells apart. */
export type Kinds<K extends string, T extends Tagged<K>> = {
  readonly [Tag in T[K]]: Fields<Omit<Extract<T, { readonly [key in K]: Tag }>, K>>;
};

/** An alternative that says by `K` which one it is. */
export type Tagged<K extends string> = { readonly [key in K]: string };

/** The error of a field that is not what was expected. */
export function wrong(field: string, expected: string): ShapeError {
  const where = field === "" ? "the body" : field;
  return new ShapeError(`Cannot read ${where}: expected ${expected}`, field === "" ? undefined : field);
}

/** A text. */
export const text: Shape<string> = (value, at) => {
  if (typeof value !== "string") throw wrong(at, "a text");
  return value;
};

/** A whole number of 0 or more. */
export const count: Shape<number> = (value, at) => {
  if (!Number.isSafeInteger(value) || Number(value) < 0) throw wrong(at, "a whole number of 0 or more");
  return Number(value);
};

/** Yes or no. */
export const flag: Shape<boolean> = (value, at) => {
  if (typeof value !== "boolean") throw wrong(at, "true or false");
  return value;
};

/** Any value at all. */
export const json: Shape<Json> = (value, at) => {
  if (value === undefined) throw wrong(at, "a value");
  return value as Json; // read by JSON.parse()
};

/** An object, whatever its fields. */
export const object: Shape<{ readonly [key: string]: Json }> = (value, at) => {
  record({})(value, at);
  return value as { readonly [key: string]: Json }; // read by JSON.parse()
};

/** One of these words. */
export function word<T extends string>(...words: readonly T[]): Shape<T> {
  return (value, at) => {
    const found = words.find((word) => word === value);
    if (found === undefined) throw wrong(at, words.join(", "));
    return found;
  };
}

/** A value that may be missing. */
export function optional<T>(shape: Shape<T>): Shape<T | undefined> {
  return (value, at) => value === undefined ? undefined : shape(value, at);
}

/** A list. */
export function list<T>(shape: Shape<T>): Shape<readonly T[]> {
  return (value, at) => {
    if (!Array.isArray(value)) throw wrong(at, "a list");
    return value.map((item, index) => shape(item, within(at, index)));
  };
}

/** An object with these fields. */
export function record<T extends object>(fields: Fields<T>): Shape<T> {
  return (value, at) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrong(at, "an object");
    const read = Object.entries<Shape<unknown>>(fields)
      .map(([key, shape]) => [key, shape(Reflect.get(value, key), within(at, key))] as const);
    return Object.fromEntries(read.filter(([, field]) => field !== undefined)) as T; // every field has its shape
  };
}

/** An object of one of several kinds, told apart by its `key`. */
export function tagged<K extends string, T extends Tagged<K>>(key: K, kinds: Kinds<K, T>): Shape<T> {
  const shapes = new Map(Object.entries<Fields<object>>(kinds).map(([tag, fields]) => [tag, record(fields)]));
  const tags = record<Tagged<string>>({ [key]: word(...shapes.keys()) });
  return (value, at) => {
    const tag = tags(value, at);
    return { ...tag, ...shapes.get(tag[key] ?? "")?.(value, at) } as T; // a kind, and its fields
  };
}

function within(at: string, key: string | number): string {
  return at === "" ? String(key) : `${at}.${key}`;
}
