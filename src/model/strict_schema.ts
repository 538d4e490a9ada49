/**
 * Strict schemas: the subset of JSON Schema that providers enforce while the model writes.
 *
 * @module
 */
import { isObject, type UnknownObject } from "../protocol/shape.ts";

/** Keywords outside the subset. Leaving one out would change which values are valid. */
const unsupported = ["$ref", "allOf", "if", "not", "patternProperties", "prefixItems"];

/**
 * Converts `schema` to the subset that every provider enforces: objects are closed and all their properties are required. Keywords that only narrow a value,
 * such as a length or a pattern, are left out. Returns undefined if the conversion would change the schema otherwise.
 */
export function strictSchema(schema: unknown): UnknownObject | undefined {
  if (!isObject(schema) || unsupported.some((word) => word in schema)) return undefined;
  const converted = typeSchema(schema);
  const { title, description } = schema;
  return converted &&
    { ...(title !== undefined && { title }), ...(description !== undefined && { description }), ...converted };
}

function typeSchema(schema: UnknownObject): UnknownObject | undefined {
  const { type, enum: values, const: value, anyOf, oneOf } = schema;
  if (value !== undefined || values !== undefined) {
    return { ...(type !== undefined && { type }), ...(values !== undefined ? { enum: values } : { const: value }) };
  }
  const kinds = Array.isArray(type) ? type.map((one) => ({ ...schema, type: one })) : anyOf ?? oneOf;
  if (Array.isArray(kinds)) return unionSchema(kinds);
  if (type === "object") return objectSchema(schema);
  if (type !== "array") return type === undefined ? undefined : { type };
  const items = strictSchema(schema.items);
  return items && { type, items };
}

function unionSchema(kinds: readonly unknown[]): UnknownObject | undefined {
  const anyOf = allDefined(kinds.map(strictSchema));
  return anyOf && { anyOf };
}

/** Converts an object whose properties are all required. */
function objectSchema(
  { properties = {}, required = [], additionalProperties = false }: UnknownObject,
): UnknownObject | undefined {
  if (!isObject(properties) || !Array.isArray(required) || additionalProperties !== false) return undefined;
  const names = Object.keys(properties);
  const schemas = allDefined(names.map((name) => required.includes(name) ? strictSchema(properties[name]) : undefined));
  return schemas && {
    type: "object",
    properties: Object.fromEntries(names.map((name, index) => [name, schemas[index]])),
    required: names,
    additionalProperties: false,
  };
}

/** Returns the list, or undefined if one of its values is missing. */
function allDefined<T>(values: readonly (T | undefined)[]): readonly T[] | undefined {
  return values.every((value) => value !== undefined) ? values : undefined;
}
