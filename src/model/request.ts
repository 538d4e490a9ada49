/**
 * Parts of a request that every adapter uses: the check of its options, notices for files, and strict schemas.
 *
 * @module
 */
import { ModelError, type ModelOptions, type ModelRequest, type ToolDefinition } from "./model.ts";
import type { Message } from "../protocol/message.ts";
import type { Call, MediaPart } from "../protocol/part.ts";
import { isObject, type UnknownObject } from "../protocol/shape.ts";

// Checks the options of a request, so that an adapter never ignores one silently.

/** Options that an adapter cannot send. */
interface OptionLimits {
  /** The provider's name of the model. */
  readonly model: string;
  /** The name of the API, for errors. */
  readonly api: string;
  /** The options that the API lacks. */
  readonly unsupported: readonly (keyof ModelOptions)[];
}

/** Throws a {@linkcode ModelError} if a request has an option that the API lacks, or a tool choice that its tools do not allow. */
export function checkOptions({ options, tools }: ModelRequest, { model, api, unsupported }: OptionLimits): void {
  const missing = unsupported.find((name) => options[name] !== undefined);
  if (missing) throw optionError(model, `${api} has no option ${missing}`);
  const { toolChoice } = options;
  if (typeof toolChoice === "object" && !tools.some(({ name }) => name === toolChoice.tool)) {
    throw optionError(model, `toolChoice expects a tool of the request, got "${toolChoice.tool}"`);
  }
}

/** Returns the provider's value for an option. Throws a {@linkcode ModelError} that lists the possible ones if there is none. */
export function optionValue<T>(
  model: string,
  name: keyof ModelOptions,
  value: string,
  values: Readonly<Record<string, T>>,
): T {
  const found = Object.hasOwn(values, value) ? values[value] : undefined;
  if (found !== undefined) return found;
  const expected = Object.keys(values).map((each) => `"${each}"`).join(", ");
  throw optionError(model, `${name} expects one of ${expected}, got "${value}"`);
}

/** Creates the error of an option that cannot be sent. */
export function optionError(model: string, reason: string): ModelError {
  return new ModelError(`Cannot ask ${model}: ${reason}`);
}

// Parts of a request that are the same for every provider.

/** Returns the input of a call as an object. Providers reject other values, which a model may have written. */
export function callInput({ input }: Call): UnknownObject {
  return isObject(input) ? input : { input };
}

/** Returns the input schema of a tool without `$schema`, which some providers reject. */
export function toolSchema({ schema: { $schema: _, ...schema } }: Pick<ToolDefinition, "schema">): UnknownObject {
  return schema;
}

/** Returns the text of the person that comes first if a conversation that is sent begins with the assistant, which some providers reject. */
export function openingNotice(messages: readonly Message[]): string | undefined {
  return messages.some(({ role }) => role === "user") ? "[The conversation begins with your message.]" : undefined;
}

/** Returns the text that replaces a file that a model generated, where the provider accepts no files from it. */
export function generatedFileNotice({ mediaType, url }: MediaPart): string {
  return `[You generated a file of type ${mediaType}${url === undefined ? "" : `: ${url}`}]`;
}

/** Returns the text that replaces a file of a type that the provider does not accept. */
export function fileNotice({ mediaType }: MediaPart): string {
  return `[A file of type ${mediaType}, which you cannot be shown.]`;
}

// Strict schemas: the subset of JSON Schema that providers enforce while the model writes.

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
