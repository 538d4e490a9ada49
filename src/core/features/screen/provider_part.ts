/**
 * Calls that the provider runs, and their results, as texts to check.
 *
 * @module
 */
import type { Event } from "../../../protocol/event.ts";
import type { AnswerPart, ProviderCallPart, ProviderResultPart } from "../../../protocol/part.ts";
import { mapLeaves } from "../../lib/map_leaves.ts";

/** A call that the provider runs, or its result. */
export type ProviderPart = ProviderCallPart | ProviderResultPart;

/** The event of one. */
export type ProviderEvent = Extract<Event, { readonly content: ProviderPart }>;

/** Whether a part is a call that the provider runs, or its result. */
export function isProviderPart(part: AnswerPart): part is ProviderPart {
  return part.type === "provider_call" || part.type === "provider_result";
}

/** Returns the text of a part that a check receives: of a call or a result the name, its server, and every key, text and number, one per line. */
export function checkedText(part: AnswerPart): string | undefined {
  if (part.type === "text" || part.type === "reasoning") return part.text;
  if (!isProviderPart(part)) return undefined;
  const lines: unknown[] = "server" in part ? [part.name, part.server] : [part.name];
  const add = (text: unknown) => String(lines.push(text));
  mapLeaves(part.type === "provider_call" ? part.input : part.output, add, add);
  return lines.join("\n");
}

/** Puts `text` in the place of the input or the output. */
export function replaceContent(part: ProviderPart, text: string): ProviderPart {
  const { meta: _, ...rest } = part;
  return rest.type === "provider_call" ? { ...rest, input: text } : { ...rest, output: text };
}

/**
 * Leaves out the provider's own data of calls and their results. The provider accepts them only unchanged and in pairs, and receives them as text now. `ids`
 * are those of the calls. Default: all.
 */
export function withoutNotes(parts: readonly AnswerPart[], ids?: ReadonlySet<string>): readonly AnswerPart[] {
  return parts.map((part) => {
    if (!isProviderPart(part) || ids?.has(part.callId) === false) return part;
    const { meta: _, ...rest } = part;
    return rest;
  });
}
