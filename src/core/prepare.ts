/**
 * Before and after a tool runs: what the model wrote becomes its input, what it returned becomes a result.
 *
 * @module
 */
import type { Call, ToolResult } from "../protocol/message.ts";
import { failed } from "./answers.ts";
import { complaint } from "./schema.ts";
import type { AnyTool } from "./tool.ts";

/** A call that can run, or why it cannot, as a result for the model. */
export type Prepared = { readonly input: unknown } | { readonly wrong: ToolResult };

/** Parses what the model wrote against the tool's schema. */
export async function prepare(
  tool: AnyTool | undefined,
  call: Call,
  name: string,
  input: unknown,
  names: () => string[],
): Promise<Prepared> {
  if (call.malformed !== undefined && input === call.input) {
    return { wrong: failed(`The input of ${name} is not valid JSON: ${call.malformed}`) };
  }
  if (!tool) return { wrong: failed(`There is no tool "${name}". There is: ${names().join(", ") || "none"}`) };
  const validated = await tool.input["~standard"].validate(input);
  return validated.issues
    ? { wrong: failed(`The input of ${name} is not valid: ${complaint(validated.issues)}`) }
    : { input: validated.value };
}

/** What a tool returned, as a result. */
export function resultOf(returned: unknown): ToolResult {
  if (isResult(returned)) return returned;
  const text = typeof returned === "string" ? returned : JSON.stringify(returned) ?? "";
  return { type: "result", status: "ok", parts: [{ type: "text", text }] };
}

/** Whether a hook or a tool gave a result. */
export function isResult(value: unknown): value is ToolResult {
  return typeof value === "object" && value !== null && "type" in value && value.type === "result" && "parts" in value;
}
