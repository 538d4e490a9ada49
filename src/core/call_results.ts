/**
 * Results of calls as the model reads them: the texts of calls that did not run or did not complete. Every result is kept in the form that is made here, cut to
 * the limit `output`.
 *
 * @module
 */
import { failed, result, skipped } from "./hook_answers.ts";
import type { ReviewedResult } from "./position.ts";
import type { FinishReason } from "../protocol/event.ts";
import type { CallResult, ToolResult } from "../protocol/message.ts";
import type { Call, ContentPart } from "../protocol/part.ts";

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

/** Returns true if the provider, a check or the model itself stopped the response: none of its calls may run. */
export function wasStopped(finish: FinishReason | undefined): boolean {
  return finish === "filter" || finish === "refusal";
}

/** Returns the result of a call that may not run because of the way in which its response ended, as the model reads it. */
export function unfinished({ name, incomplete }: Call, finish: FinishReason | undefined): ToolResult | undefined {
  if (wasStopped(finish)) {
    const by = finish === "refusal" ? "the response is a refusal" : "a filter stopped the response";
    return skipped(`Not run: ${by}.`);
  }
  if (!incomplete) return undefined;
  return finish === "length"
    ? failed(
      `Not run: your response reached the output limit within the input of ${name}. Call it again with a shorter input, or divide the work among several responses.`,
    )
    : failed(`Not run: your response ended within the input of ${name}. Call it again with its whole input.`);
}

/** Returns the result of a call as the transcript keeps it. `note` is a text for the model beside it, `limit` is that of its text. */
export function reviewedResult(
  { id, name }: Call,
  { status, parts, context = [], artifacts, handled, rewritten, input }: ToolResult,
  { note, limit }: { readonly note: string | undefined; readonly limit: number },
): ReviewedResult {
  const texts = note === undefined ? context : [...context, note];
  return {
    callId: id,
    name,
    status,
    parts: bounded(parts, limit),
    ...(artifacts && { artifacts }),
    ...(handled && status === "ok" && { handled }),
    ...(texts.length > 0 && { context: texts }),
    ...(rewritten && input !== undefined && { rewritten: { input } }),
  };
}

/** Returns a result without the thrown value, which is not JSON. */
export function withoutError(result: ToolResult): ToolResult {
  if (result.error === undefined) return result;
  const { error: _, ...saved } = result;
  return saved;
}

/** Returns a result without the values for the model that are beside it. */
export function withoutAdditions(reviewed: ReviewedResult): CallResult {
  if (!reviewed.context && !reviewed.rewritten) return reviewed;
  const { context: _, rewritten: __, ...result } = reviewed;
  return result;
}

/** Shortens the text of a result to `limit` characters. Hooks have seen it whole. */
function bounded(parts: readonly ContentPart[], limit: number): readonly ContentPart[] {
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
