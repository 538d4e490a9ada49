/**
 * Schemas: anything that follows Standard Schema and can say itself as JSON Schema, such as Zod.
 *
 * @module
 */

/** A schema, as Standard Schema has it. */
export interface Schema<I = unknown, O = I> {
  /** The standard's own place for what a schema can do. */
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

/** What a validation gives: the value, or what is wrong with it. */
export type Validation<O> =
  | { readonly value: O; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

/** One thing that is wrong. */
export interface Issue {
  /** What is wrong, for a person. */
  readonly message: string;
  /** Where it is wrong. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What a schema's values are, once validated. */
export type Infer<S> = S extends { readonly "~standard": { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly output: infer O } ? O : unknown
  : unknown;

/** A schema written by hand, which says itself as `json`. Default of `validate`: takes whatever comes. */
export function schemaOf<T>(
  json: { readonly [key: string]: unknown },
  validate: (value: unknown) => Validation<T> = (value) => ({ value: value as T }), // nobody looks
): Schema<T> {
  const said = () => ({ ...json });
  return { "~standard": { version: 1, vendor: "jizai", validate, jsonSchema: { input: said, output: said } } };
}

/** The JSON Schema of what `schema` accepts. Throws a `TypeError` where it cannot say. */
export function jsonSchemaOf(schema: Schema, what: string): { readonly [key: string]: unknown } {
  const { jsonSchema, vendor } = schema["~standard"];
  if (!jsonSchema) {
    throw new TypeError(
      `Cannot describe ${what}: its ${vendor} schema cannot say itself as JSON Schema. Zod from 4.2 can.`,
    );
  }
  return jsonSchema.input({ target: "draft-2020-12" });
}

/** What is wrong with a value, in one line a model can act on. */
export function describeIssues(issues: readonly Issue[]): string {
  return issues.map(({ path = [], message }) => {
    const place = path.map((key) => String(typeof key === "object" ? key.key : key)).join(".");
    return place ? `${place}: ${message}` : message;
  }).join("; ");
}
