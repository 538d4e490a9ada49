/**
 * An item with text that is streamed: a message, or reasoning.
 *
 * @module
 */
import type { SourcePart } from "../../../protocol/part.ts";
import type { OutputItem, ResponseOutput } from "./output.ts";

/** The kind of a text. */
export type TextKind = "output_text" | "reasoning_text";

/** An item that is streamed. Its text is a part of its content from the first delta or source on. */
export interface TextItem {
  /** The kind of its text. */
  readonly kind: TextKind;
  /** The log probabilities of its text. */
  readonly logprobs: object[];
  /** The text so far. */
  text(): string;
  /** Encodes the start of the item. */
  begin(): string;
  /** Encodes a piece of text. */
  delta(piece: string): string;
  /** Encodes a source as an annotation of the text, also after the end of the item. */
  source(source: SourcePart): string;
  /** Encodes further content: a refusal, a file. */
  add(part: object): string;
  /** Encodes the end of the item, and adds the item to the output. */
  end(status: string): string;
}

/** Creates an item of `output`. */
export function textItem({ items, place, sequence, frame }: ResponseOutput, kind: TextKind): TextItem {
  const itemPlace = place();
  const { item_id: id, output_index } = itemPlace;
  const content: object[] = [];
  const annotations: object[] = [];
  const logprobs: object[] = [];
  let text = "";
  /** The place of the text, and the same as JSON without braces. */
  let at: { readonly content_index: number } | undefined;
  let atJson = "";

  function itemOf(status: string, content: readonly object[]): OutputItem {
    const type = kind === "output_text" ? { type: "message", role: "assistant" } : { type: "reasoning", summary: [] };
    return { id, ...type, status, content };
  }

  function textPart(): object {
    const added = { annotations, ...(logprobs.length > 0 && { logprobs }) };
    return { type: kind, text, ...(kind === "output_text" && added) };
  }

  function beginText(): string {
    if (at) return "";
    at = { ...itemPlace, content_index: content.push({}) - 1 };
    atJson = JSON.stringify(at).slice(1, -1);
    return frame("content_part.added", { ...at, part: textPart() });
  }

  function endText(): string {
    if (!at) return "";
    const part = textPart();
    content[at.content_index] = part;
    return frame(`${kind}.done`, { ...at, text }) + frame("content_part.done", { ...at, part });
  }

  return {
    kind,
    logprobs,
    text: () => text,
    begin: () => frame("output_item.added", { output_index, item: itemOf("in_progress", []) }),
    delta(piece) {
      const begun = beginText();
      const json = JSON.stringify(piece);
      text += piece;
      return `${begun}data: {"type":"response.${kind}.delta","sequence_number":${sequence()},${atJson},"delta":${json}}\n\n`;
    },
    source({ url, title = "" }) {
      const begun = beginText();
      const annotation = url === undefined
        ? { type: "file_citation", file_id: "", filename: title, index: text.length }
        : { type: "url_citation", url, title, start_index: 0, end_index: text.length };
      const annotation_index = annotations.push(annotation) - 1;
      return begun + frame("output_text.annotation.added", { ...at, annotation_index, annotation });
    },
    add(part) {
      const fields = { ...itemPlace, content_index: content.push(part) - 1, part };
      return frame("content_part.added", fields) + frame("content_part.done", fields);
    },
    end(status) {
      const ended = endText();
      const item = itemOf(status, content);
      items.push(item);
      return ended + frame("output_item.done", { output_index, item });
    },
  };
}
