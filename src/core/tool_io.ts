/**
 * The input and the output of tools: the model's JSON becomes a parsed input, a returned value becomes a result.
 *
 * @module
 */
import { expectJson, plainCopy } from "./lib/json.ts";
import { expectType } from "./lib/options.ts";
import { readable } from "./outcome.ts";
import type { ToolContext } from "./points.ts";
import { failed, text } from "./results.ts";
import type { EngineRun } from "./run.ts";
import { describeIssues, type Validation } from "./tool.ts";
import type { Point } from "../protocol/event.ts";
import type { ResultStatus, ToolResult } from "../protocol/message.ts";

/** A parsed input and its JSON, or the result for a call that cannot run. */
export type ParsedInput = { readonly input: unknown; readonly json: unknown } | { readonly wrong: ToolResult };

/** Validates `input` against the tool's schema. Returns no promise if the schema is synchronous. */
export function parseToolInput(
  engine: EngineRun,
  { tool, call, name }: ToolContext,
  input: unknown,
): ParsedInput | Promise<ParsedInput> {
  const wrong = (message: string) => ({ wrong: failed(message) });
  const fail = (error: unknown): ParsedInput => {
    engine.events.report(error);
    return wrong(`The input of ${name} could not be checked.`);
  };
  const isOwn = input === call.input;
  if (isOwn && call.malformed !== undefined) return wrong(`The input of ${name} is not valid JSON: ${call.malformed}`);
  try {
    if (!isOwn) expectJson(`Cannot use the input of ${name}`, input);
    if (!tool) {
      const names = [...engine.settings.toolsByName.keys()].join(", ") || "none";
      return wrong(`There is no tool "${name}". The tools are: ${names}`);
    }
    const read = (validated: Validation<unknown>): ParsedInput =>
      validated.issues
        ? wrong(`The input of ${name} is not valid: ${describeIssues(validated.issues)}`)
        : { input: validated.value, json: jsonOf(validated.value, input) };
    const validated = tool.input["~standard"].validate(input);
    return "then" in validated ? Promise.resolve(validated).then(read).catch(fail) : read(validated);
  } catch (error) {
    return fail(error);
  }
}

/** Returns the JSON of the input with which a tool would run: after its schema. Undefined if the schema rejects the input, and without a tool. */
export async function jsonThatRuns(
  { tool, input }: Pick<ToolContext, "tool" | "input">,
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
  const { error, ...given } = returned;
  expectJson(operation, given);
  expectJson("Cannot use the artifacts of a tool", given.artifacts, { whole: true });
  const result = plainCopy(operation, given) as ToolResult; // its fields are checked here
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
