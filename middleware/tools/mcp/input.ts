/**
 * Checks the inputs of MCP tools for what can be repaired: a nested value that the model wrote as a JSON string, and null for an optional field. Everything
 * else is for the server to check.
 *
 * @module
 */
import type { Schema } from "../../../mod.ts";
import { isObject, schemaOf, type UnknownObject } from "../../../src/core/kit.ts";

/** An issue, as schemas report it. */
interface Issue {
  readonly message: string;
  readonly path: readonly PropertyKey[];
}

/** Returns the schema of a tool's input. It rejects values that are no objects, and those that the engine can repair before the call. */
export function inputOf(schema: UnknownObject): Schema<UnknownObject> {
  return schemaOf<UnknownObject>(schema, (value) => {
    if (!isObject(value)) return { issues: [{ message: "expected an object" }] };
    const issues = issuesOf(value, schema, { root: schema, path: [] });
    return issues.length > 0 ? { issues } : { value };
  });
}

/** A place in an input. */
interface Place {
  /** The schema that `$ref` refers into. */
  readonly root: UnknownObject;
  readonly path: readonly PropertyKey[];
  /** Whether the value may be left out. */
  readonly optional?: boolean;
}

/** The deepest value that is checked. */
const maxDepth = 100;

/** Returns the issues of a value whose repair its schema accepts. */
function issuesOf(value: unknown, schema: unknown, { root, path, optional = false }: Place): readonly Issue[] {
  if (schema === undefined || path.length > maxDepth) return [];
  const types = typesOf(schema, root);
  const isAccepted = (type: string) => !types || types.has(type);
  if (value === null) {
    return optional && !isAccepted("null") ? [{ message: "expected a value other than null", path }] : [];
  }
  if (typeof value === "string") {
    const type = /^\s*[[{]/.test(value) && !isAccepted("string") && typeIn(value);
    return type && isAccepted(type) ? [{ message: `expected an ${type}, got a text`, path }] : [];
  }
  const inner = innerOf(schema, root);
  if (Array.isArray(value)) {
    return value.flatMap((each, index) => issuesOf(each, inner.items, { root, path: [...path, index] }));
  }
  if (!isObject(value) || !isObject(inner.properties)) return [];
  const { properties, required } = inner;
  return Object.entries(value).flatMap(([name, each]) => {
    if (!Object.hasOwn(properties, name)) return [];
    const optional = !Array.isArray(required) || !required.includes(name);
    return issuesOf(each, properties[name], { root, path: [...path, name], optional });
  });
}

function typeIn(text: string): "array" | "object" | undefined {
  try {
    return Array.isArray(JSON.parse(text)) ? "array" : "object";
  } catch {
    return undefined;
  }
}

/** The most references in a row, which may form a circle. */
const maxReferences = 20;

/** Returns the schema that a `$ref` within the same schema names, or the schema itself. */
function resolve(schema: unknown, root: UnknownObject, left = maxReferences): unknown {
  if (!isObject(schema) || typeof schema.$ref !== "string") return schema;
  if (!schema.$ref.startsWith("#") || left === 0) return true;
  const keys = schema.$ref.split("/").slice(1).map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
  const target = keys.reduce<unknown>(
    (within, key) => isObject(within) && Object.hasOwn(within, key) ? within[key] : true,
    root,
  );
  return resolve(target, root, left - 1);
}

/** Returns the schemas of which a value needs to fit only one, or the only one of `allOf`. */
function choicesOf({ anyOf, oneOf, allOf }: UnknownObject): readonly unknown[] | undefined {
  const choices = anyOf ?? oneOf ?? (Array.isArray(allOf) && allOf.length === 1 ? allOf : undefined);
  return Array.isArray(choices) ? choices : undefined;
}

/** Returns the types that a schema accepts, or undefined if it does not tell. A schema within itself adds no types: `seen` has those that were visited. */
function typesOf(schemaPart: unknown, root: UnknownObject, seen = new Set<unknown>()): ReadonlySet<string> | undefined {
  const schema = resolve(schemaPart, root);
  if (!isObject(schema)) return undefined;
  if (seen.has(schema)) return new Set();
  seen.add(schema);
  const { type, enum: values, const: value, nullable } = schema;
  const named = type ?? (Array.isArray(values) ? values.map(typeOf) : value !== undefined ? typeOf(value) : undefined);
  if (named !== undefined) return new Set([named, nullable === true ? "null" : []].flat() as string[]); // readTool() accepts texts only
  const sets = choicesOf(schema)?.map((choice) => typesOf(choice, root, seen));
  return sets?.every((set) => set !== undefined) ? new Set(sets.flatMap((set) => [...set])) : undefined;
}

function typeOf(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}

/** Returns the schema that describes the inside of a value: of several choices, the only one for objects or lists. */
function innerOf(schemaPart: unknown, root: UnknownObject, left = maxReferences): UnknownObject {
  const schema = resolve(schemaPart, root);
  if (!isObject(schema) || left === 0) return {};
  const choices = choicesOf(schema)?.filter((choice) => {
    const types = typesOf(choice, root);
    return !types || types.has("object") || types.has("array");
  });
  if (!choices || schema.properties || schema.items) return schema;
  return choices.length === 1 ? innerOf(choices[0], root, left - 1) : {};
}
