/**
 * Calls that a provider ran, as compatible clients send them back in a history.
 *
 * @module
 */
import type { AnswerPart, Json } from "../../../protocol/part.ts";
import { id, jsonOrText, lazy, object, string } from "../../../protocol/shape.ts";
import { nullish } from "../content.ts";

/** Parses one of the `executed_tools` of a message. */
export const executedTool = /* @__PURE__ */ lazy(() =>
  object({ id: nullish(id), type: string, arguments: nullish(string), output: nullish(string) })
);

/** Returns the parts of executed tools: their calls and results, as far as the client has them. */
export function executedParts(tools: readonly ReturnType<typeof executedTool>[]): readonly AnswerPart[] {
  return tools.flatMap(({ id, type: name, arguments: input, output }, index): readonly AnswerPart[] => {
    const at = { callId: id ?? `executed_${index}`, name };
    const call = { type: "provider_call", ...at, input: jsonOf(input) } as const;
    const result = { type: "provider_result", ...at, status: "ok", output: jsonOf(output) } as const;
    return [...input === undefined ? [] : [call], ...output === undefined ? [] : [result]];
  });
}

function jsonOf(text: string | undefined): Json {
  return jsonOrText(text) as Json; // parsed JSON
}
