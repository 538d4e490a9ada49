/**
 * Masks messages, results and JSON values.
 *
 * @module
 */
import type { AnswerPart, Call, ContentPart, Message, ToolResult } from "../../../mod.ts";
import { mapLeaves } from "../../../src/core/kit.ts";
import { cover, type Mask, type Span } from "./mask.ts";

/** Masks every text and number in a value, whatever its shape. Keys stay as they are. Returns the same value if nothing changes. */
export function maskValue<T>(value: T, { whole }: Pick<Mask, "whole">): T {
  return mapLeaves(value, (leaf) => maskLeaf(leaf, whole)) as T; // of the same shape; a number that is a secret becomes a text
}

function maskLeaf(leaf: unknown, whole: Mask["whole"]): unknown {
  if (typeof leaf === "string") return whole(leaf);
  if (typeof leaf !== "number" && typeof leaf !== "bigint") return leaf;
  const text = whole(String(leaf));
  return text === String(leaf) ? leaf : text;
}

/** Masks the values of some fields of an object; its other fields, such as ids and types, stay as they are. */
export function maskFields<T extends object>(value: T, fields: readonly string[], mask: Pick<Mask, "whole">): T {
  const given = Object.fromEntries(Object.entries(value).filter(([key]) => fields.includes(key)));
  const kept = maskValue(given, mask);
  return kept === given ? value : { ...value, ...kept };
}

type Part = AnswerPart | ContentPart;

/** Masks the texts, the thoughts and the calls of parts. A secret that is split over several texts is found too. Media stay as they are. */
export function maskParts<P extends Part>(parts: readonly P[], mask: Mask): readonly P[] {
  let clean = true;
  const calls = parts.map((part) => {
    const call = part.type === "call" ? maskCall<Call>(part, mask) : part;
    if (call === part) return part;
    clean = false;
    return { ...part, ...call };
  });
  return maskTexts<P>(maskTexts<P>(clean ? parts : calls, "text", mask), "reasoning", mask);
}

/** Masks the texts of one type as if they were one text. The mask takes the place of the end of a secret; a text that becomes empty is left out. */
function maskTexts<P extends Part>(parts: readonly P[], type: "text" | "reasoning", mask: Mask): readonly P[] {
  const texts = parts.map((part) => part.type === type ? part.text : "");
  const joined = texts.join("");
  const spans = mask.find(joined);
  if (spans.length === 0) return parts;
  let start = 0;
  return parts.flatMap((part, index) => {
    const text = texts[index] ?? "";
    const range: Span = [start, start += text.length];
    if (text === "") return [part];
    const masked = coverRange(joined, spans, range);
    return masked === "" ? [] : [masked === text ? part : { ...part, text: masked }];
  });
}

/** Covers the part of `text` in a range. A span that ends after the range is left out of it. */
function coverRange(text: string, spans: readonly Span[], [from, to]: Span): string {
  const inside = spans.filter(([, end]) => end > from && end <= to).map(([start, end]) =>
    [Math.max(start, from), end] as const
  );
  const cut = spans.find(([start, end]) => start < to && end > to)?.[0] ?? to;
  return cover(text, inside, from, Math.max(from, cut));
}

/** Masks the input of a call. The reason why an input is not JSON is replaced, because it quotes the input. */
export function maskCall<C extends Call>(call: C, mask: Mask): C {
  const input = maskValue(call.input, mask);
  if (call.malformed !== undefined) return { ...call, input, malformed: "not JSON" };
  return input === call.input ? call : { ...call, input };
}

/** Masks a message. */
export function maskMessage(message: Message, mask: Mask): Message {
  switch (message.role) {
    case "user":
      return maskContent(message, mask);
    case "assistant":
      return maskContent(message, mask);
    case "tool": {
      const results = message.results.map((result) => maskContent(result, mask));
      return results.every((result, index) => result === message.results[index]) ? message : { ...message, results };
    }
  }
}

/** Masks the parts of a message or a result. */
export function maskContent<T extends { readonly parts: readonly Part[] }>(whole: T, mask: Mask): T {
  const parts = maskParts(whole.parts, mask);
  return parts === whole.parts ? whole : { ...whole, parts };
}

/** Masks texts that the model reads one after another. A secret that is split over several texts is found too. */
function maskContext(context: readonly string[], mask: Mask): readonly string[] {
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
