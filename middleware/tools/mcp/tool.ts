/**
 * Reads the tools that an MCP server lists. A tool that cannot be used is left out, with the reason, and takes no other one with it.
 *
 * @module
 */

/** A JSON object of unknown shape. */
export interface JsonObject {
  readonly [name: string]: unknown;
}

/** A tool as its server describes it. */
export interface ServerTool {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly inputSchema: JsonObject;
  readonly annotations?: { readonly readOnlyHint?: boolean | undefined } | undefined;
}

/** A tool that cannot be used. */
export interface UnusableTool {
  /** The server's own name of the tool. Undefined if it has none. */
  readonly name: string | undefined;
  /** The member that cannot be read, and the expected value. */
  readonly fault: string;
}

/** Reads a tool. Only the members that are used are kept. */
export function readTool(listed: unknown): ServerTool | UnusableTool {
  const { name, title, description, inputSchema, annotations }: JsonObject = Object(listed);
  const faultOf = (...fault: Parameters<typeof unexpected>) => ({
    name: typeof name === "string" && name !== "" ? name : undefined,
    fault: unexpected(...fault),
  });
  if (typeof name !== "string" || name === "") return faultOf("its `name`", name, "a text");
  if (description !== undefined && typeof description !== "string") {
    return faultOf("its `description`", description, "a text");
  }
  if (!isObject(inputSchema)) return faultOf("its `inputSchema`", inputSchema, "an object");
  if (inputSchema.type !== "object") return faultOf("`inputSchema.type`", inputSchema.type, '"object"');
  const faults: string[] = [];
  const schema = readSchema(inputSchema, { place: "inputSchema", faults });
  if (faults[0] !== undefined) return { name, fault: faults[0] };
  return {
    name,
    inputSchema: schema as JsonObject, // read from an object
    ...(typeof title === "string" && { title }),
    ...(description !== undefined && { description }),
    ...(isObject(annotations) && { annotations: { readOnlyHint: annotations.readOnlyHint === true } }),
  };
}

/** The deepest schema that is read. */
const maxDepth = 100;

/** The keywords whose value is a list of schemas, an object of schemas, or a schema. */
const listed = /^(anyOf|oneOf|allOf|prefixItems)$/;
const named = /^(properties|patternProperties|\$defs|definitions|dependentSchemas)$/;
const single = /^(items|additionalProperties|not|if|then|else|contains|propertyNames)$/;

/** A place in a schema, and the faults found so far. */
interface Reading {
  readonly place: string;
  readonly faults: string[];
  readonly depth?: number;
}

/**
 * Copies a schema without the keywords that are null, as servers write those that are absent. Adds a fault for a value that providers reject: they reject the
 * whole request, with its other tools.
 */
function readSchema(schema: unknown, { place, faults, depth = 0 }: Reading): unknown {
  if (typeof schema === "boolean") return schema;
  if (!isObject(schema) || depth > maxDepth) {
    faults.push(unexpected(`\`${place}\``, schema, depth > maxDepth ? `at most ${maxDepth} levels` : "a schema"));
    return schema;
  }
  const read = (value: unknown, name: string) =>
    readSchema(value, { place: `${place}.${name}`, faults, depth: depth + 1 });
  const expect = (isExpected: boolean, keyword: string, expected: string) => {
    if (!isExpected) faults.push(unexpected(`\`${place}.${keyword}\``, schema[keyword], expected));
  };
  function readKeyword(keyword: string, value: unknown): unknown {
    if (Array.isArray(value) && (listed.test(keyword) || keyword === "items")) {
      return value.map((each, at) => read(each, `${keyword}.${at}`));
    }
    if (named.test(keyword) && Array.isArray(value) && value.length === 0) return {}; // as PHP writes an empty object
    if (named.test(keyword) && isObject(value)) {
      return Object.fromEntries(
        Object.entries(value).map(([name, each]) => [name, read(each, `${keyword}.${name}`)]),
      );
    }
    if (single.test(keyword)) return read(value, keyword);
    expect(!listed.test(keyword), keyword, "a list of schemas");
    expect(!named.test(keyword), keyword, "an object of schemas");
    expect(keyword !== "required" || isListOfTexts(value), keyword, "a list of names");
    expect(keyword !== "type" || typeof value === "string" || isListOfTexts(value), keyword, "the name of a type");
    expect(keyword !== "enum" || Array.isArray(value), keyword, "a list of values");
    return value;
  }
  return Object.fromEntries(
    Object.entries(schema).filter(([keyword, value]) => value !== null || /^(const|default)$/.test(keyword))
      .map(([keyword, value]) => [keyword, readKeyword(keyword, value)]),
  );
}

function isListOfTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

function unexpected(subject: string, value: unknown, expected: string): string {
  const given = value === undefined ? "missing" : JSON.stringify(value).slice(0, 100);
  return `${subject} is ${given}; expected ${expected}`;
}

/** Whether a value is an object and not an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
