/**
 * Output items of a response of the Responses API.
 *
 * @module
 */
import type { AddedPart, SourcePart } from "../../../protocol/part.ts";
import { encodeTokens } from "../logprobs.ts";
import { callItems } from "./call_items.ts";
import { fileContent, imageItem } from "./media.ts";
import { type OutputItem, responseOutput } from "./output.ts";
import { type TextItem, textItem, type TextKind } from "./text_item.ts";

/** Encodes the output items of one response. */
export interface ItemEncoder {
  /** The items so far, without the one that is streamed. */
  readonly output: readonly OutputItem[];
  /** Encodes an event with the next sequence number. Its type is `response.` and `type`. */
  frame(type: string, fields: object): string;
  /** Encodes a piece of text; nothing for an empty piece. */
  delta(kind: TextKind, text: string): string;
  /** Encodes a complete message; nothing for an empty text. */
  wholeText(text: string): string;
  /** Replaces the text of the turn. The other parts of its messages are sent again. The last one ends with `status`. */
  replaceText(text: string, status: string): string;
  /**
   * Encodes a part that is complete at once. A source is an annotation of the message that is streamed, or of the next one; a refusal and a file are further
   * content of a message. An image is an item, and so is a call that the provider runs.
   */
  part(part: AddedPart): string;
  /** Encodes an item that is complete at once. */
  add(item: OutputItem): string;
  /** Ends the item that is streamed. Default status: "completed". */
  close(status?: string): string;
  /** Encodes the final answer, unless a message has text, and the sources that no message followed. */
  finish(answer: string): string;
  /** Begins a turn, to which `discard()` goes back. */
  mark(): void;
  /** Removes the items of the turn from the output. */
  discard(): string;
}

/** Creates the encoder of one response; `idPrefix` begins the ids of its items. */
export function itemEncoder(idPrefix: () => string): ItemEncoder {
  const output = responseOutput(idPrefix);
  const { items, frame } = output;
  const calls = callItems(output);
  /** The item that is streamed, and the newest message with text. */
  let open: TextItem | undefined;
  let message: TextItem | undefined;
  /** The sources for the next message: a message without text would not parse as a structured answer. */
  let held: SourcePart[] = [];
  /** The parts in messages of the turn, which stay if the text of the turn is replaced. */
  let kept: AddedPart[] = [];
  /** The number of items, the newest message and the held sources before the turn. */
  let before = { length: 0, message, held };

  /** Returns the open item of this kind, or a new one with the frames that begin it. */
  function itemFor(kind: TextKind): readonly [item: TextItem, opening: string] {
    if (open?.kind === kind) return [open, ""];
    const closed = close();
    open = textItem(output, kind);
    return [open, closed + open.begin()];
  }

  function delta(kind: TextKind, text: string): string {
    if (text === "") return "";
    const [item, opening] = itemFor(kind);
    if (kind !== "output_text" || item === message) return opening + item.delta(text);
    message = item;
    return opening + annotate(item) + item.delta(text);
  }

  function wholeText(text: string): string {
    return delta("output_text", text) + close();
  }

  /** Adds the held sources to a message. */
  function annotate(item: TextItem): string {
    const sources = held;
    held = [];
    return sources.map(item.source).join("");
  }

  function close(status = "completed"): string {
    const closed = open?.end(status) ?? "";
    open = undefined;
    return closed;
  }

  function add(item: OutputItem): string {
    const { item_id: id, output_index } = output.place();
    const fields = { output_index, item: { id, ...item, status: "completed" } };
    items.push(fields.item);
    return frame("output_item.added", fields) + frame("output_item.done", fields);
  }

  /** Adds content to the message that is streamed, or to a new one. */
  function addContent(part: object): string {
    const [item, opening] = itemFor("output_text");
    return opening + item.add(part);
  }

  /** Goes back to the state before the turn, except for the items. */
  function rewind(): void {
    ({ message } = before);
    held = [...before.held];
    kept = [];
  }

  function part(part: AddedPart): string {
    switch (part.type) {
      case "source":
        kept.push(part);
        held.push(part);
        return open && open === message ? annotate(open) : "";
      case "logprobs":
        open?.logprobs.push(...encodeTokens(part.tokens));
        return "";
      case "refusal":
        kept.push(part);
        return addContent({ type: "refusal", refusal: part.text });
      case "media": {
        const image = imageItem(part);
        if (image) return close() + add(image);
        kept.push(part);
        return addContent(fileContent(part, open?.text()));
      }
      case "provider_call":
        return close() + calls.begin(part);
      case "provider_result":
        return close() + calls.end(part);
    }
  }

  return {
    output: items,
    frame,
    delta,
    wholeText,
    replaceText(text, status) {
      const closed = close("incomplete");
      const parts = kept;
      items.push(...items.splice(before.length).filter(({ type }) => type !== "message"));
      rewind();
      return closed + delta("output_text", text) + parts.map(part).join("") + close(status);
    },
    part,
    add,
    close,
    finish(answer) {
      const rest = message ? "" : delta("output_text", answer);
      if (held.length === 0) return rest;
      const [item, opening] = message ? [message, ""] : itemFor("output_text");
      return rest + opening + annotate(item);
    },
    mark() {
      before = { length: items.length, message, held: [...held] };
      kept = [];
    },
    discard() {
      const closed = close("incomplete");
      items.splice(before.length);
      rewind();
      return closed + calls.closeRemoved();
    },
  };
}
