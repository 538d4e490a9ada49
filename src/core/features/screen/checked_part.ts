/**
 * The parts of a response that are checked, and their texts.
 *
 * @module
 */
import type {
  AnswerPart,
  MediaPart,
  ProviderCallPart,
  ProviderResultPart,
  ReasoningPart,
  RefusalPart,
  SourcePart,
  TextPart,
} from "../../../protocol/part.ts";

/** A part that is checked: a text, a refusal, a source, media, or a call that the provider runs and its result. */
export type CheckedPart =
  | TextPart
  | ReasoningPart
  | RefusalPart
  | SourcePart
  | MediaPart
  | ProviderCallPart
  | ProviderResultPart;

/** Returns true for a part that is checked: all but calls, and log probabilities, which are left out. */
export function isChecked(part: AnswerPart): part is CheckedPart {
  return part.type !== "call" && part.type !== "logprobs";
}

/** Returns true for a call that the provider runs, and for its result. */
function isOfProvider(part: AnswerPart): part is ProviderCallPart | ProviderResultPart {
  return part.type === "provider_call" || part.type === "provider_result";
}

/** Returns the text of a part that a check receives. Of a call or a result: the name, its server, and every key, text and number, one per line. Of a source, and to tell media apart: each field. */
export function checkedText(part: CheckedPart): string {
  if (part.type === "text" || part.type === "reasoning") return part.text;
  if (!isOfProvider(part)) {
    const { type: _, ...fields } = part;
    return Object.values(fields).filter(Boolean).join("\n");
  }
  const names = "server" in part ? [part.name, part.server] : [part.name];
  return [...names, ...leavesOf(part.type === "provider_call" ? part.input : part.output)].join("\n");
}

/** Returns the keys and the values of a JSON value, in their order. */
function leavesOf(value: unknown): readonly unknown[] {
  if (typeof value !== "object" || value === null) return [String(value)];
  if (Array.isArray(value)) return value.flatMap(leavesOf);
  return Object.entries(value).flatMap(([key, each]) => [key, ...leavesOf(each)]);
}

/** Returns a part whose text, input or output is `text`, without the provider's own data. Undefined if nothing of it is left. */
export function replaceText(part: CheckedPart, text: string | undefined): CheckedPart | undefined {
  if (text === undefined) return undefined;
  if (!isOfProvider(part)) return text === "" ? undefined : { type: part.type === "media" ? "text" : part.type, text };
  const { meta: _, ...rest } = part;
  return rest.type === "provider_call" ? { ...rest, input: text } : { ...rest, output: text };
}

/** Returns a window of a text after the windows before it, as one part. Other parts stay. */
export function joined(before: CheckedPart | undefined, part: CheckedPart): CheckedPart {
  if (part.type !== "text" && part.type !== "reasoning") return part;
  return before ? { ...part, text: checkedText(before) + part.text } : part;
}

/**
 * Leaves out the provider's own data of calls and their results. The provider accepts them only unchanged and in pairs, and receives them as text now. `ids`
 * are those of the calls. Default: all.
 */
export function withoutNotes(parts: readonly AnswerPart[], ids?: ReadonlySet<string>): readonly AnswerPart[] {
  return parts.map((part) => {
    if (!isOfProvider(part) || ids?.has(part.callId) === false) return part;
    const { meta: _, ...rest } = part;
    return rest;
  });
}
