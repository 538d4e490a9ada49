/**
 * The input and the output of tools: the model's JSON is repaired and parsed, a returned value becomes a result.
 *
 * @module
 */
import { failed, text } from "./hook_answers.ts";
import { expectJson, plainCopy } from "./lib/json.ts";
import { expectType } from "./lib/options.ts";
import type { ToolContext } from "./points.ts";
import type { EngineRun } from "./run.ts";
import { readable } from "./shown_errors.ts";
import { type AnyTool, describeIssues, type Issue, type Schema, type Validation } from "./tool.ts";
import type { Point } from "../protocol/event.ts";
import type { ResultStatus, ToolResult } from "../protocol/message.ts";

// Repairs of inputs: a nested value that the model wrote as a JSON string, and null for an optional field.

/** The number of repairs in a row: a value in a JSON string may need one of its own. */
const maxRounds = 5;

/**
 * Returns the input with the repairs without which the schema rejects it, if it accepts the repaired input; else the same input. Only the values that the schema
 * names in its issues change. Returns a promise only for an asynchronous schema. Never throws and never rejects: the parser of the input reports a failure of the schema.
 */
export function repairInput(schema: Schema, input: unknown): unknown {
  if (!mayBeRepaired(input, 0)) return input;
  try {
    return validateRepaired({ schema, input }, input, maxRounds);
  } catch {
    return input;
  }
}

/** An input to repair, and its schema. */
interface Repair {
  readonly schema: Schema;
  readonly input: unknown;
}

/** Validates a candidate for the repaired input. Returns it if the schema accepts it, or the result of the next round. */
function validateRepaired(repair: Repair, candidate: unknown, rounds: number): unknown {
  const validated = repair.schema["~standard"].validate(candidate);
  if (!("then" in validated)) return nextRepair(repair, candidate, rounds, validated);
  return Promise.resolve(validated)
    .then((settled) => nextRepair(repair, candidate, rounds, settled))
    .catch(() => repair.input);
}

function nextRepair(repair: Repair, candidate: unknown, rounds: number, { issues }: Validation<unknown>): unknown {
  if (!issues) return candidate;
  const repaired = rounds > 0 ? issues.reduce(repairAt, candidate) : candidate;
  return repaired === candidate ? repair.input : validateRepaired(repair, repaired, rounds - 1);
}

/** True if a value contains null, or a text that may be JSON. Most inputs do not, and are validated only once. */
function mayBeRepaired(value: unknown, depth: number): boolean {
  if (value === null) return depth > 0;
  if (typeof value === "string") return /^\s*[[{]/.test(value);
  return typeof value === "object" && depth < 100 &&
    Object.values(value).some((each) => mayBeRepaired(each, depth + 1));
}

/** Stands for a field that is left out. */
const omitted = Symbol("omitted");

function repairAt(input: unknown, { path = [] }: Issue): unknown {
  const repaired = replaceAt(input, path.map((key) => typeof key === "object" ? key.key : key));
  return repaired === omitted ? input : repaired;
}

/** Returns a copy in which the value at a path is repaired, or the same value if there is nothing to repair. */
function replaceAt(value: unknown, [key, ...rest]: readonly PropertyKey[]): unknown {
  if (key === undefined) return repaired(value);
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return value;
  const entries = new Map<PropertyKey, unknown>(Object.entries(value));
  const inner = entries.get(String(key));
  const replaced = replaceAt(inner, rest);
  if (replaced === inner || (replaced === omitted && Array.isArray(value))) return value;
  if (replaced === omitted) entries.delete(String(key));
  else entries.set(String(key), replaced);
  return Array.isArray(value) ? [...entries.values()] : Object.fromEntries(entries);
}

function repaired(value: unknown): unknown {
  if (value === null) return omitted;
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

// The parser: the schema of the tool makes its input of the model's JSON.

/** A parsed input and its JSON, or the result for a call that cannot run. */
export type ParsedInput = { readonly input: unknown; readonly json: unknown } | { readonly invalid: ToolResult };

/** Validates `input` against the tool's schema. Returns no promise if the schema is synchronous. */
export function parseToolInput(
  engine: EngineRun,
  { tool, call, name }: ToolContext,
  input: unknown,
): ParsedInput | Promise<ParsedInput> {
  const isOwn = input === call.input;
  if (isOwn && call.malformed !== undefined) {
    return invalidInput(`The input of ${name} is not valid JSON: ${call.malformed}`);
  }
  try {
    if (!isOwn) expectJson(`Cannot use the input of ${name}`, input);
    if (!tool) {
      const names = [...engine.settings.toolsByName.keys()].join(", ") || "none";
      return invalidInput(`There is no tool "${name}". The tools are: ${names}`);
    }
    const validated = tool.input["~standard"].validate(input);
    if (!("then" in validated)) return parsedInput(name, input, validated);
    return Promise.resolve(validated)
      .then((settled) => parsedInput(name, input, settled))
      .catch((error) => uncheckedInput(engine, name, error));
  } catch (error) {
    return uncheckedInput(engine, name, error);
  }
}

function parsedInput(name: string, input: unknown, validated: Validation<unknown>): ParsedInput {
  if (validated.issues) return invalidInput(`The input of ${name} is not valid: ${describeIssues(validated.issues)}`);
  return { input: validated.value, json: jsonOf(validated.value, input) };
}

/** Reports that a schema threw. */
function uncheckedInput({ events }: EngineRun, name: string, error: unknown): ParsedInput {
  events.report(error);
  return invalidInput(`The input of ${name} could not be checked.`);
}

function invalidInput(message: string): ParsedInput {
  return { invalid: failed(message) };
}

/** Returns the JSON of the input with which a tool would run: after its schema. Undefined if the schema rejects the input, and without a tool. */
export async function jsonThatRuns(
  { tool, input }: { readonly tool: AnyTool | undefined; readonly input: unknown },
): Promise<{ readonly json: unknown } | undefined> {
  const validated = await tool?.input["~standard"].validate(input);
  return validated && !validated.issues ? { json: jsonOf(validated.value, input) } : undefined;
}

/** Returns the JSON of a parsed input: the input itself if the schema changed nothing. One that has none, such as a Map, is shown as it was before the schema. */
function jsonOf(parsed: unknown, input: unknown): unknown {
  if (parsed === input) return input;
  try {
    expectJson("Cannot show the input of a call", parsed, { whole: true });
    const text = JSON.stringify(parsed);
    return text === JSON.stringify(input) ? input : JSON.parse(text);
  } catch {
    return input;
  }
}

// Results: a tool may return a text, a result, or any other JSON.

const operation = "Cannot use the result of a tool";

/** Returns the value that a tool returned as a result. Throws an error if it is none: a failure of this call. */
export function toResult(returned: unknown): ToolResult {
  if (isResult(returned)) return plainResult(returned);
  if (typeof returned === "string") return text(returned);
  expectJson(operation, returned, { whole: true });
  return text(JSON.stringify(returned) ?? "");
}

const statuses: readonly unknown[] = [
  "ok",
  "error",
  "denied",
  "aborted",
  "skipped",
  "timeout",
] satisfies ResultStatus[];

/** Returns a checked copy of a result, in which no field can throw or change once the call is over. */
function plainResult(returned: ToolResult): ToolResult {
  const { error, ...fields } = returned;
  expectJson(operation, fields);
  expectJson("Cannot use the artifacts of a tool", fields.artifacts, { whole: true });
  const result = plainCopy(operation, fields) as ToolResult; // its fields are checked here
  const { status, person, silent, handled, rewritten } = result;
  expectParts(result);
  if (!statuses.includes(status)) {
    throw new TypeError(`${operation}: its \`status\` is none; expected ${statuses.join(", ")}`);
  }
  expectType(operation, "person", person, "String");
  for (const [name, flag] of Object.entries({ silent, handled, rewritten })) {
    expectType(operation, name, flag, "Boolean");
  }
  return error === undefined ? result : { ...result, error: readable(error) };
}

/** Throws a `TypeError` if a result has a part that is neither text nor media, a context that is no list of texts, or artifacts that are not JSON. */
function expectParts({ parts, context, artifacts }: ToolResult): void {
  for (const [index, part] of parts.entries()) {
    const valid = part?.type === "text" ? typeof part.text === "string" : part?.type === "media";
    if (!valid) throw new TypeError(`${operation}: part ${index} is neither text nor media`);
  }
  if (context !== undefined && !(Array.isArray(context) && context.every((each) => typeof each === "string"))) {
    throw new TypeError(`${operation}: expected a \`context\` of strings`);
  }
  expectType("Cannot use the artifacts of a tool", "artifacts", artifacts, "Array");
}

/** Returns the value that a hook returned if it is a result. Throws a `TypeError` otherwise. */
export function toolResultOf(name: string, point: Point, returned: unknown): ToolResult {
  if (isResult(returned)) return returned;
  throw new TypeError(`Cannot leave ${point}: "${name}" returned no result; expected text(), denied() or failed()`);
}

function isResult(value: unknown): value is ToolResult {
  return typeof value === "object" && value !== null && "type" in value && value.type === "result" &&
    "parts" in value && Array.isArray(value.parts);
}
