/**
 * Masks messages and results.
 *
 * @module
 */
import type { CallResult, Message, ToolResult } from "../../../mod.ts";
import type { Mask } from "./mask.ts";
import { maskEach, maskFields, maskName, maskParts, maskValue, type Part } from "./values.ts";

/** Masks a message. */
export function maskMessage(message: Message, mask: Mask): Message {
  switch (message.role) {
    case "user":
      return maskContent(message, mask);
    case "assistant":
      return maskContent(message, mask);
    case "tool": {
      const results = maskEach(message.results, (result) => maskCallResult(result, mask));
      return results === message.results ? message : { ...message, results };
    }
  }
}

/** Masks messages. Returns the same list if nothing changes. */
export type MaskMessages = (messages: readonly Message[]) => readonly Message[];

/** Returns a function that masks each message once, although it is in every request and in every save. */
export function messagesMask(mask: Mask): MaskMessages {
  const known = new WeakMap<Message, Message>();
  const maskOnce = (message: Message) => {
    const earlier = known.get(message);
    if (earlier) return earlier;
    const masked = maskMessage(message, mask);
    known.set(message, masked).set(masked, masked);
    return masked;
  };
  return (messages) => maskEach(messages, maskOnce);
}

/** A message or a result. */
interface Content {
  readonly parts: readonly Part[];
  readonly from?: string;
}

/** Masks the parts of a message or a result, and the author that a message names. */
export function maskContent<T extends Content>(given: T, mask: Mask): T {
  const content = maskFields(given, ["from"], mask);
  const parts = maskParts(content.parts, mask);
  return parts === content.parts ? content : { ...content, parts };
}

/** Masks the result of a call as the transcript and events have it. */
export function maskCallResult<R extends CallResult>(result: R, mask: Mask): R {
  const name = maskName(result.name, mask);
  const artifacts = maskValue(result.artifacts, mask);
  const masked = maskContent(result, mask);
  return name === result.name && artifacts === result.artifacts
    ? masked
    : { ...masked, name, ...(artifacts && { artifacts }) };
}

/** Masks texts that the model reads one after another. A secret that is split over several texts is found too. */
export function maskContext(context: readonly string[], mask: Mask): readonly string[] {
  const given = context.map((text) => ({ type: "text", text }) as const);
  const parts = maskParts(given, mask);
  return parts === given ? context : parts.map(({ text }) => text);
}

/** Masks a tool's result: its parts, its context, its artifacts, the text for the person, and the input. */
export function maskResult(result: ToolResult, mask: Mask): ToolResult {
  const { artifacts, person, input } = result;
  const given = { artifacts, person, input };
  const kept = maskValue(given, mask);
  const parts = maskParts(result.parts, mask);
  const context = result.context && maskContext(result.context, mask);
  if (kept === given && parts === result.parts && context === result.context) return result;
  return {
    ...result,
    parts,
    ...(context && { context }),
    ...(kept.artifacts && { artifacts: kept.artifacts }),
    ...(kept.person !== undefined && { person: kept.person }),
    ...(kept.input !== undefined && { input: kept.input }),
  };
}
