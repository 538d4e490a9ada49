/**
 * Masks JSON values, and the parts of messages and results.
 *
 * @module
 */
import type { AnswerPart, Call, ContentPart, Question } from "../../../mod.ts";
import type { LogprobsPart, ProviderCallPart, ProviderResultPart } from "../../../src/core/engine.ts";
import { mapLeaves } from "../../../src/core/kit.ts";
import { cover, type Mask, maxRounds, type Span } from "./mask.ts";

/** Masks every text, number and key in a value, whatever its shape. Returns the same value if nothing changes. */
export function maskValue<T>(value: T, { whole }: Pick<Mask, "whole">): T {
  return mapLeaves(value, (leaf) => maskLeaf(leaf, whole), whole) as T; // of the same shape; a number that is a secret becomes a text
}

/** Masks the name of a tool, which a model may have made up. The new name is one that providers accept. */
export function maskName(name: string, { whole }: Pick<Mask, "whole">): string {
  return whole(name) === name ? name : "redacted";
}

function maskLeaf(leaf: unknown, whole: Mask["whole"]): unknown {
  if (typeof leaf === "string") return whole(leaf);
  if (typeof leaf !== "number" && typeof leaf !== "bigint") return leaf;
  const text = whole(String(leaf));
  return text === String(leaf) ? leaf : text;
}

/** Masks the values of some fields of an object; its other fields, such as ids and types, stay as they are. */
export function maskFields<T extends object>(value: T, fields: readonly string[], mask: Pick<Mask, "whole">): T {
  let masked = value;
  for (const [key, given] of Object.entries(value)) {
    const kept = fields.includes(key) ? maskValue(given, mask) : given;
    if (!Object.is(kept, given)) masked = { ...masked, [key]: kept };
  }
  return masked;
}

/** Fields of questions that contain text or JSON. The others are ids, and names of agents. */
const questionFields = ["input", "questions", "schema", "suggestions"];

/** Masks a question to a person. */
export function maskQuestion<Q extends Partial<Question>>(question: Q, mask: Mask): Q {
  const masked = maskFields(question, questionFields, mask);
  const tool = question.tool === undefined ? undefined : maskName(question.tool, mask);
  return tool === question.tool ? masked : { ...masked, tool };
}

/** Masks each item of a list. Returns the same list if nothing changes. */
export function maskEach<T>(items: readonly T[], masked: (item: T) => T): readonly T[] {
  const all = items.map(masked);
  return all.every((each, index) => Object.is(each, items[index])) ? items : all;
}

export type Part = AnswerPart | ContentPart;

/**
 * Masks the texts, the thoughts, the calls, the sources and the provider's calls and results of parts. A secret that is split over several texts is found
 * too. Of media, only the provider's own data is masked.
 */
export function maskParts<P extends Part>(parts: readonly P[], mask: Mask): readonly P[] {
  let clean = true;
  const calls = parts.map((part) => {
    const masked = part.type === "call"
      ? maskCall<Call>(part, mask)
      : part.type === "source"
      ? maskFields(part, ["url", "title", "text"], mask)
      : part.type === "media" && part.meta !== undefined
      ? maskFields(part, ["meta"], mask)
      : part.type === "refusal"
      ? maskFields(part, ["text", "category"], mask)
      : part.type === "logprobs"
      ? maskTokens(part, mask)
      : part.type === "provider_call" || part.type === "provider_result"
      ? maskProvider(part, mask)
      : isFromClient(part)
      ? maskFields(part, ["meta"], mask)
      : part;
    if (masked === part) return part;
    clean = false;
    return { ...part, ...masked };
  });
  return maskTexts<P>(maskTexts<P>(clean ? parts : calls, "text", mask), "reasoning", mask);
}

/** True for a thought with an item that a client sent. A provider's own thoughts name its model; they may be signed, and stay as they are. */
function isFromClient(part: Part): part is Extract<Part, { readonly type: "reasoning" }> {
  const meta = part.type === "reasoning" ? Object(part.meta) : {};
  return "item" in meta && !("model" in meta);
}

/** Leaves out the tokens if their text, or one of them, contains a secret: its parts cannot be told from the rest. */
function maskTokens(part: LogprobsPart, mask: Mask): LogprobsPart {
  const texts = part.tokens.flatMap(({ token, top = [] }) => [token, ...top.map((each) => each.token)]);
  const all = [part.tokens.map(({ token }) => token).join(""), ...texts];
  return all.some((text) => mask.whole(text) !== text) ? { ...part, tokens: [] } : part;
}

/** Masks a call that the provider runs, or its result. Its id stays. */
export function maskProvider<P extends ProviderCallPart | ProviderResultPart>(part: P, mask: Mask): P {
  const name = maskName(part.name, mask);
  const masked = maskFields(part, ["server", "input", "output", "meta"], mask);
  return name === part.name ? masked : { ...masked, name };
}

/** Masks the texts of one type as if they were one text, until masking them again changes nothing. */
function maskTexts<P extends Part>(parts: readonly P[], type: "text" | "reasoning", mask: Mask): readonly P[] {
  let masked = parts;
  for (let round = 0; round < maxRounds; round++) {
    const next = maskTextsOnce(masked, type, mask);
    if (next === masked) break;
    masked = next;
  }
  return masked;
}

/** Masks the texts of one type. The mask takes the place of the end of a secret; a text that becomes empty is left out. */
function maskTextsOnce<P extends Part>(parts: readonly P[], type: "text" | "reasoning", mask: Mask): readonly P[] {
  const texts = parts.map((part) => part.type === type ? part.text : "");
  const joined = texts.join("");
  const spans = mask.find(joined);
  if (spans.length === 0) return parts;
  let start = 0;
  const masked = parts.flatMap((part, index) => {
    const text = texts[index] ?? "";
    const range: Span = [start, start += text.length];
    if (text === "") return [part];
    const masked = coverRange(joined, spans, range);
    return masked === "" ? [] : [masked === text ? part : { ...part, text: masked }];
  });
  return masked.length === parts.length && masked.every((part, index) => part === parts[index]) ? parts : masked;
}

/** Covers the part of `text` in a range. A span that ends after the range is left out of it. */
function coverRange(text: string, spans: readonly Span[], [from, to]: Span): string {
  const inside = spans.filter(([, end]) => end > from && end <= to).map(([start, end]) =>
    [Math.max(start, from), end] as const
  );
  const cut = spans.find(([start, end]) => start < to && end > to)?.[0] ?? to;
  return cover(text, inside, from, Math.max(from, cut));
}

/** Masks the name and the input of a call. The reason why an input is not JSON is replaced, because it quotes the input. */
export function maskCall<C extends Call>(call: C, mask: Mask): C {
  const name = maskName(call.name, mask);
  const input = maskValue(call.input, mask);
  if (call.malformed !== undefined) return { ...call, name, input, malformed: "not JSON" };
  return name === call.name && Object.is(input, call.input) ? call : { ...call, name, input };
}
