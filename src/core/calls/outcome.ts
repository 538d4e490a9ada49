/**
 * The results of calls that did not complete, and the size limit of results.
 *
 * @module
 */
import type { ToolResult } from "../../protocol/message.ts";
import type { ContentPart } from "../../protocol/part.ts";
import { failed, result } from "../hooks/results.ts";

/** The result of a call that was started before its process died: its effect is unknown. */
export const interrupted: ToolResult = /* @__PURE__ */ result(
  "aborted",
  "Interrupted: it is not known whether it was done.",
);

/** The result of a call that was stopped while it ran. */
export const stopped: ToolResult = /* @__PURE__ */ result("aborted", "Stopped before it was done.");

/** Returns the result of a call whose own result no hook has reviewed. */
export function withheld(reason: string): ToolResult {
  return failed(`Withheld: ${reason}.`);
}

/** Returns the result of a call that did not run. */
export function notRun(reason: string): ToolResult {
  return result("aborted", `Not run: ${reason}.`);
}

/** Cuts the text of a result to `limit` characters. Hooks have seen it whole. */
export function bounded(parts: readonly ContentPart[], limit: number): readonly ContentPart[] {
  let left = limit;
  return parts.map((part) => {
    if (part.type !== "text") return part;
    const { length } = part.text;
    const fits = length <= left;
    const kept = part.text.slice(0, left);
    const text = fits ? part.text : `${kept.toWellFormed()}\n[cut: ${left} of ${length} characters]`;
    left = Math.max(0, left - length);
    return fits ? part : { ...part, text };
  });
}
