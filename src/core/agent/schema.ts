/**
 * Schemas: a schema is a Standard Schema that converts to JSON Schema, such as one of Zod or zod/mini.
 *
 * @module
 */
import * as z from "zod/v4/core";
import { reasonOf } from "../lib/cancellation.ts";

/** A Standard Schema. */
export interface Schema<I = unknown, O = I> {
  /** The interface that Standard Schema defines. */
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => Validation<O> | Promise<Validation<O>>;
    readonly jsonSchema?: {
      readonly input: (options: { readonly target: "draft-2020-12" }) => { [key: string]: unknown };
      readonly output: (options: { readonly target: "draft-2020-12" }) => { [key: string]: unknown };
    };
    readonly types?: { readonly input: I; readonly output: O } | undefined;
  };
}

/** The result of a validation: the value, or the issues. */
export type Validation<O> =
  | { readonly value: O; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

/** One issue of a validation. */
export interface Issue {
  /** The message for a person. */
  readonly message: string;
  /** The path of the field. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The type of a schema's validated values. */
export type Infer<S> = S extends { readonly "~standard": { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly output: infer O } ? O : unknown
  : unknown;

/** Creates a schema from a JSON Schema and a validation function. Default of `validate`: accepts every value. */
export function schemaOf<T>(
  json: { readonly [key: string]: unknown },
  validate: (value: unknown) => Validation<T> = (value) => ({ value: value as T }), // the caller vouches for the type
): Schema<T> {
  const copy = () => ({ ...json });
  return { "~standard": { version: 1, vendor: "jizai", validate, jsonSchema: { input: copy, output: copy } } };
}

/** Returns the Standard Schema of `schema`. One of the core of Zod 4, as zod/mini has them, leaves out the conversion to JSON Schema, which is added. */
export function standardOf<S extends Schema>(schema: S): S["~standard"] {
  const standard = schema?.["~standard"]; // code without types may pass anything
  if (standard?.jsonSchema || !isZodCore(schema)) return standard;
  const convert = (io: "input" | "output") => () => z.toJSONSchema(schema, { io });
  return { ...standard, jsonSchema: { input: convert("input"), output: convert("output") } };
}

function isZodCore(schema: object | undefined): schema is z.$ZodType {
  return Object(schema)._zod?.def !== undefined;
}

/** Returns the JSON Schema of the input of `schema`. Throws a `TypeError` if the schema library cannot convert it. */
export function jsonSchemaOf(schema: Schema, subject: string): { readonly [key: string]: unknown } {
  const { jsonSchema, vendor } = standardOf(schema) ?? {};
  if (!jsonSchema) {
    const why = vendor ? `its ${vendor} schema does not convert to JSON Schema` : "it has no schema";
    throw new TypeError(
      `Cannot describe ${subject}: ${why}; expected a Standard Schema that converts, such as one of Zod 4 or zod/mini`,
    );
  }
  try {
    return jsonSchema.input({ target: "draft-2020-12" });
  } catch (cause) {
    throw new TypeError(`Cannot describe ${subject}: ${reasonOf(cause)}; expected types that JSON has`, { cause });
  }
}

/** Returns the issues as one line that a model can act on. */
export function describeIssues(issues: readonly Issue[]): string {
  return issues.map(({ path = [], message }) => {
    const place = path.map((key) => String(typeof key === "object" ? key.key : key)).join(".");
    return place ? `${place}: ${message}` : message;
  }).join("; ");
}
