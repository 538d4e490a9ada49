/**
 * Before and after a tool runs: what the model wrote becomes its input, what it returned becomes a result.
 *
 * @module
 */
import type { ToolResult } from "../protocol/message.ts";
import type { Point } from "../protocol/event.ts";
import { failed, text } from "./answers.ts";
import type { Live } from "./live.ts";
import type { ToolContext } from "./points.ts";
import { describeIssues, type Validation } from "./schema.ts";

/** A call that can run, or why it cannot, as a result for the model. */
export type Prepared = { readonly input: unknown } | { readonly wrong: ToolResult };

/** Parses what the model wrote against the tool's schema: at once, where the schema does not wait. */
export function prepare(
  live: Live,
  { tool, call, name }: Pick<ToolContext, "tool" | "call" | "name">,
  input: unknown,
): Prepared | Promise<Prepared> {
  if (call.malformed !== undefined && input === call.input) {
    return { wrong: failed(`The input of ${name} is not valid JSON: ${call.malformed}`) };
  }
  if (!tool) {
    const names = [...live.tools.keys()].join(", ") || "none";
    return { wrong: failed(`There is no tool "${name}". There is: ${names}`) };
  }
  const read = (validated: Validation<unknown>): Prepared =>
    validated.issues
      ? { wrong: failed(`The input of ${name} is not valid: ${describeIssues(validated.issues)}`) }
      : { input: validated.value };
  const fail = (error: unknown): Prepared => {
    live.events.report(error);
    return { wrong: failed(`The input of ${name} could not be checked.`) };
  };
  try {
    const validated = tool.input["~standard"].validate(input);
    return "then" in validated ? Promise.resolve(validated).then(read).catch(fail) : read(validated);
  } catch (error) {
    return fail(error);
  }
}

/** What a tool returned, as a result. */
export function resultOf(returned: unknown): ToolResult {
  if (isResult(returned)) return returned;
  return text(typeof returned === "string" ? returned : JSON.stringify(returned) ?? "");
}

/** What the hook `name` gave, where it is a result. */
export function resultBy(name: string, point: Point, returned: unknown): ToolResult {
  if (isResult(returned)) return returned;
  throw new TypeError(`Cannot leave ${point}: "${name}" returned no result; text(), denied() and failed() make one`);
}

function isResult(value: unknown): value is ToolResult {
  return typeof value === "object" && value !== null && "type" in value && value.type === "result" &&
    "parts" in value && Array.isArray(value.parts);
}
