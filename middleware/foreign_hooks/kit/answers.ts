/**
 * Reads the answers of hooks: validates each of their fields, and names the members that their system does not know.
 *
 * @module
 */
import * as z from "zod";
import { describeIssues, isObject } from "../../../src/core/kit.ts";

// The fields of an answer. Zod validates every field on its own, so an invalid field does not affect the others.

/** The schemas of the fields of an answer. `$ZodType` is the core of every schema: the compiler compares fewer members with it than with `ZodType`. */
type Shape = Readonly<Record<string, z.core.$ZodType>>;

/** The valid fields of an answer. */
export type Fields<S extends Shape> = { readonly [K in keyof S]?: z.output<S[K]> };

/**
 * Returns the fields of `shape` that are present and valid; `onInvalid` receives one text per invalid field. Null counts as absent unless the schema accepts
 * it.
 */
export function readFields<S extends Shape>(
  shape: S,
  members: Readonly<Record<string, unknown>>,
  onInvalid: (field: string, problem: string) => void,
): Fields<S> {
  const read: Record<string, unknown> = {};
  for (const [name, schema] of Object.entries(shape)) {
    const value = members[name];
    if (value === undefined) continue;
    const parsed = z.safeParse(schema, value);
    if (parsed.success) read[name] = parsed.data;
    else if (value !== null) onInvalid(name, describeIssues(parsed.error.issues));
  }
  return read as Fields<S>; // each field was parsed by its own schema
}

/** Returns a text that names the members of an answer that its system does not know; undefined if there are none. Null counts as absent. */
export function unknownMembers(
  answer: unknown,
  known: readonly string[],
  fold: (name: string) => string = (name) => name,
): string | undefined {
  const names = Object.entries(objectOf(answer)).filter(([name, value]) =>
    value !== undefined && value !== null && !known.includes(fold(name))
  ).map(([name]) => name.slice(0, 64));
  const more = names.length > 10 ? ` and ${names.length - 10} more` : "";
  return names.length === 0 ? undefined : `unknown members: ${names.slice(0, 10).join(", ")}${more}`;
}

// Schemas of fields: a word in any case, and a value that may be null.

/** Accepts one of `words`, in upper or lower case. */
export function word<const T extends readonly string[]>(...words: T): z.core.$ZodType<T[number]> {
  return z.preprocess((word) => typeof word === "string" ? word.trim().toLowerCase() : word, z.enum(words));
}

/** Accepts what `schema` accepts, and null or nothing as undefined. */
export function maybe<S extends z.core.$ZodType>(schema: S): z.core.$ZodType<z.output<S> | undefined> {
  return z.pipe(z.nullish(schema), z.transform((value) => value ?? undefined));
}

// Reads values of unknown shape, and joins texts.

/** Returns a value if it is an object, otherwise an empty object. */
export function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {};
}

/** Parses JSON; returns undefined for invalid JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Joins the texts that are not empty, one per line; undefined if all are empty. */
export function joinLines(texts: readonly (string | undefined)[]): string | undefined {
  return texts.filter((text) => text).join("\n") || undefined;
}
