/**
 * Schemas that providers can hold an answer to.
 *
 * @module
 */
import { type Fields, isFields } from "./fields.ts";

/** Words that cannot be left out without making another schema. */
const beyond = ["$ref", "allOf", "if", "not", "patternProperties", "prefixItems"];

/**
 * `schema` in the words that every provider understands: objects are closed and have all of their properties, and what only narrows, such as a length or
 * a pattern, is left out. Nothing where that would be another schema.
 */
export function strict(schema: unknown): Fields | undefined {
  if (!isFields(schema) || beyond.some((word) => word in schema)) return undefined;
  const form = formOf(schema);
  const { title, description } = schema;
  return form && { ...(title !== undefined && { title }), ...(description !== undefined && { description }), ...form };
}

function formOf(schema: Fields): Fields | undefined {
  const { type, enum: values, const: value, anyOf, oneOf } = schema;
  if (value !== undefined || values !== undefined) {
    return { ...(type !== undefined && { type }), ...(values !== undefined ? { enum: values } : { const: value }) };
  }
  const kinds = Array.isArray(type) ? type.map((one) => ({ ...schema, type: one })) : anyOf ?? oneOf;
  if (Array.isArray(kinds)) return among(kinds);
  if (type === "object") return objectOf(schema);
  if (type !== "array") return type === undefined ? undefined : { type };
  const items = strict(schema.items);
  return items && { type, items };
}

function among(kinds: readonly unknown[]): Fields | undefined {
  const anyOf = whole(kinds.map(strict));
  return anyOf && { anyOf };
}

/** An object that has all of its properties, and may have no others. */
function objectOf({ properties = {}, required = [], additionalProperties = false }: Fields): Fields | undefined {
  if (!isFields(properties) || !Array.isArray(required) || additionalProperties !== false) return undefined;
  const names = Object.keys(properties);
  const schemas = whole(names.map((name) => required.includes(name) ? strict(properties[name]) : undefined));
  return schemas && {
    type: "object",
    properties: Object.fromEntries(names.map((name, index) => [name, schemas[index]])),
    required: names,
    additionalProperties: false,
  };
}

/** A list in which nothing is missing. */
function whole<T>(values: readonly (T | undefined)[]): readonly T[] | undefined {
  return values.every((value) => value !== undefined) ? values : undefined;
}
