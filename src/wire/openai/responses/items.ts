/**
 * The output items of a response of the Responses API.
 *
 * @module
 */
import type { ProviderCallPart, ProviderResultPart, SourcePart } from "../../../protocol/part.ts";
import { isObject, stringOrEmpty } from "../../../protocol/unknown_json.ts";
import { encodeTokens } from "../logprobs.ts";
import type { EventOf } from "../../encoder.ts";
import { frameOf } from "../../frames.ts";
import { builtInItem, type OutputItem } from "./built_in_item.ts";

/** The kind of a text that is streamed. */
export type TextKind = "output_text" | "reasoning_text";

/** The item that is streamed. */
interface OpenItem {
  readonly kind: TextKind;
  readonly at: { readonly item_id: string; readonly output_index: number; readonly content_index: 0 };
  readonly texts: string[];
  readonly annotations: object[];
  /** The log probabilities of the text. */
  readonly logprobs: object[];
  /** Further parts of the content: a refusal, a recording. */
  readonly more: object[];
}

/** A call that the provider runs, and its item. */
interface BegunCall {
  readonly part: ProviderCallPart;
  readonly item: OutputItem;
  readonly output_index: number;
}

/** Encodes the output items of one response. */
export interface ItemEncoder {
  /** The complete items. */
  readonly output: readonly OutputItem[];
  /** True if a message has text. */
  readonly hasText: boolean;
  /** Encodes an event with the next sequence number. */
  frame(type: string, fields: object): string;
  /** Encodes a piece of text. */
  delta(kind: TextKind, text: string): string;
  /** Encodes a complete text; nothing for an empty text. */
  wholeText(text: string): string;
  /** Replaces the text of the turn. */
  replaceText(text: string): string;
  /**
   * Encodes a part that is complete at once. A source is an annotation of the message that is streamed, or of a new one; a refusal and a recording are further
   * content of it, and an image is an item. Other files have no form.
   */
  part(content: EventOf<"part.added">["content"]): string;
  /** Begins the item of a call that the provider runs. */
  call(part: ProviderCallPart): string;
  /** Completes the item of a call that the provider has run. */
  result(part: ProviderResultPart): string;
  /** Encodes an item that is complete at once. */
  add(item: OutputItem): string;
  /** Ends the item that is streamed. */
  close(): string;
  /** Begins a turn, to which `discard()` goes back. */
  mark(): void;
  /** Removes the items of the turn from the output. */
  discard(): string;
}

/** Creates the encoder of one response; `idPrefix` begins the ids of its items. */
export function itemEncoder(idPrefix: () => string): ItemEncoder {
  const output: OutputItem[] = [];
  let marked = 0;
  let sequence = 0;
  let items = 0;
  let open: OpenItem | undefined;
  /** The calls that the provider runs, with their items. */
  const calls = new Map<string, BegunCall>();
  /** The place of the open item, as JSON without braces. */
  let place = "";

  function frame(type: string, fields: object): string {
    return frameOf({ type, sequence_number: sequence++, ...fields });
  }

  function delta(kind: TextKind, text: string): string {
    const opening = open?.kind === kind ? "" : begin(kind);
    open?.texts.push(text);
    const json = JSON.stringify(text);
    return `${opening}data: {"type":"response.${kind}.delta","sequence_number":${sequence++},${place},"delta":${json}}\n\n`;
  }

  /** Begins an item, after the one that is open. */
  function begin(kind: TextKind): string {
    const closed = close();
    const output_index = items++;
    const at = { item_id: `${idPrefix()}_${output_index}`, output_index, content_index: 0 } as const;
    open = { kind, at, texts: [], annotations: [], logprobs: [], more: [] };
    place = JSON.stringify(at).slice(1, -1);
    return closed + frame("response.output_item.added", { output_index, item: itemOf(open, "in_progress", []) }) +
      frame("response.content_part.added", { ...at, part: partOf(kind, "") });
  }

  function close(status = "completed"): string {
    if (!open) return "";
    const { kind, at, texts, annotations, logprobs, more } = open;
    const text = texts.join("");
    const part = partOf(kind, text, annotations, logprobs);
    const item = itemOf(open, status, [part, ...more]);
    open = undefined;
    output.push(item);
    return frame(`response.${kind}.done`, { ...at, text }) +
      frame("response.content_part.done", { ...at, part }) +
      frame("response.output_item.done", { output_index: at.output_index, item });
  }

  /** Begins a message, unless one is open. */
  function beginMessage(): string {
    return open?.kind === "output_text" ? "" : begin("output_text");
  }

  function source({ url, title = "" }: SourcePart): string {
    const opening = beginMessage();
    const { at, texts = [], annotations = [] } = { ...open };
    const index = texts.join("").length;
    const annotation = url === undefined
      ? { type: "file_citation", file_id: "", filename: title, index }
      : { type: "url_citation", url, title, start_index: 0, end_index: index };
    const annotation_index = annotations.push(annotation) - 1;
    return opening + frame("response.output_text.annotation.added", { ...at, annotation_index, annotation });
  }

  function add(item: OutputItem): string {
    const fields = { output_index: items++, item: { ...item, status: "completed" } };
    output.push(fields.item);
    return frame("response.output_item.added", fields) + frame("response.output_item.done", fields);
  }

  function wholeText(text: string): string {
    return text === "" ? "" : delta("output_text", text) + close();
  }

  /** Adds a part to the content of the message that is streamed, or of a new one. */
  function more(part: object): string {
    const opening = beginMessage();
    const content_index = open?.more.push(part) ?? 1;
    const { item_id, output_index } = { ...open?.at };
    const at = { item_id, output_index, content_index };
    return opening + frame("response.content_part.added", { ...at, part }) +
      frame("response.content_part.done", { ...at, part });
  }

  function call(part: ProviderCallPart): string {
    const closed = close();
    const begun = { item: builtInItem(part), output_index: items++ };
    output.push(begun.item);
    calls.set(part.callId, { part, ...begun });
    return closed + frame("response.output_item.added", begun);
  }

  return {
    output,
    get hasText() {
      const texts = open?.kind === "output_text" ? [...open.texts] : [];
      for (const { type, content } of output) {
        if (type === "message" && Array.isArray(content)) texts.push(...content.map(({ text }) => stringOrEmpty(text)));
      }
      return texts.some((text) => text !== "");
    },
    frame,
    delta,
    part(content) {
      if (content.type === "source") return source(content);
      if (content.type === "logprobs") {
        if (open?.kind === "output_text") open.logprobs.push(...encodeTokens(content.tokens));
        return "";
      }
      if (content.type === "refusal") return more({ type: "refusal", refusal: content.text });
      const { mediaType, data, meta } = content;
      if (mediaType.startsWith("audio/") && data !== undefined) {
        return more({ type: "output_audio", data, transcript: open?.texts.join("") ?? "" });
      }
      if (!mediaType.startsWith("image/") || data === undefined) return "";
      const { item } = isObject(meta) ? meta : {}; // as OpenAI made it
      const own = isObject(item) ? item : { id: `${idPrefix()}_${items}`, output_format: mediaType.slice(6) };
      return close() + add({ ...own, type: "image_generation_call", result: data });
    },
    call,
    result(result) {
      const { callId, name } = result;
      const opening = calls.has(callId) ? close() : call({ type: "provider_call", callId, name, input: {} });
      const { part, item: begun, output_index } = calls.get(callId) ?? {};
      if (!part || !begun) return opening;
      const item = builtInItem(part, result);
      const at = output.indexOf(begun); // -1 if the turn began again
      if (at >= 0) output[at] = item;
      return opening + frame("response.output_item.done", { output_index, item });
    },
    close: () => close(),
    wholeText,
    replaceText(text) {
      const closed = close("incomplete");
      output.push(...output.splice(marked).filter(({ type }) => type !== "message"));
      return closed + wholeText(text);
    },
    add,
    mark() {
      marked = output.length;
    },
    discard() {
      const closed = close("incomplete");
      output.splice(marked);
      return closed;
    },
  };
}

function itemOf({ kind, at: { item_id: id } }: OpenItem, status: string, content: readonly object[]): OutputItem {
  const type = kind === "output_text" ? { type: "message", role: "assistant" } : { type: "reasoning", summary: [] };
  return { id, ...type, status, content };
}

function partOf(
  type: TextKind,
  text: string,
  annotations: readonly object[] = [],
  logprobs: readonly object[] = [],
): object {
  const added = { annotations, ...(logprobs.length > 0 && { logprobs }) };
  return { type, text, ...(type === "output_text" && added) };
}
