/**
 * Output items of a response of the Responses API.
 *
 * @module
 */
import { builtInItem as providerItem } from "../../model/openai_responses/built_in_tools.ts";
import type {
  AddedPart,
  Json,
  MediaPart,
  ProviderCallPart,
  ProviderResultPart,
  SourcePart,
} from "../../protocol/part.ts";
import { isObject } from "../../protocol/shape.ts";
import { frameOf } from "../frames.ts";
import { encodeTokens } from "./run_error.ts";

// The output of a response: its items, and the numbers of its events.

/** An item of the output. */
interface OutputItem {
  /** The kind of the item. */
  readonly type: string;
  readonly [field: string]: unknown;
}

/** The place of an item, as events name it. */
interface ItemPlace {
  readonly item_id: string;
  readonly output_index: number;
}

/** The output of one response. */
interface ResponseOutput {
  /** The items that have ended, and the calls that the provider runs, in their order. */
  readonly items: OutputItem[];
  /** Returns the place of a new item. */
  place(): ItemPlace;
  /** Returns the next sequence number. */
  sequence(): number;
  /** Encodes an event with the next sequence number. Its type is `response.` and `type`. */
  frame(type: string, fields: object): string;
}

/** Creates the output of one response; `idPrefix` begins the ids of its items. */
function responseOutput(idPrefix: () => string): ResponseOutput {
  let places = 0;
  let sequence = 0;
  return {
    items: [],
    place() {
      const output_index = places++;
      return { item_id: `${idPrefix()}_${output_index}`, output_index };
    },
    sequence: () => sequence++,
    frame: (type, fields) => frameOf({ type: `response.${type}`, sequence_number: sequence++, ...fields }),
  };
}

// Generated files in the output of the Responses API. An image is an item, as OpenAI's own tool makes it. Messages of OpenAI contain no files; other files
// are sent in the form that a client uses for its own: `input_file` and `input_image`.

/** Returns the item of an image: that of OpenAI if it made it. Returns undefined for other files, and for an image that has only an address. */
function imageItem({ mediaType, data, meta }: MediaPart): OutputItem | undefined {
  const [kind, format] = mediaType.split("/");
  if (kind !== "image" || data === undefined) return undefined;
  const { item = { output_format: format } } = isObject(meta) ? meta : {};
  return { ...(isObject(item) && item), type: "image_generation_call", result: data };
}

/** Returns the content of a message for a file. The transcript of a recording is the text before it. */
function fileContent({ mediaType, data, url }: MediaPart, transcript = ""): object {
  const [kind, format] = mediaType.split("/");
  if (data === undefined) {
    return kind === "image"
      ? { type: "input_image", image_url: url, detail: "auto" }
      : { type: "input_file", file_url: url };
  }
  if (kind === "audio") return { type: "output_audio", data, transcript };
  return { type: "input_file", filename: `file.${format}`, file_data: `data:${mediaType};base64,${data}` };
}

// Calls that the provider of the model runs, as the items of the Responses API.

/** Returns the item of a call: that of OpenAI if it ran it, that of OpenAI's own tool of this name, or else a call of an MCP server. */
function builtInItem(part: ProviderCallPart, result?: ProviderResultPart): OutputItem {
  const { callId: id, name, server, input, meta } = part;
  const status = result ? result.status === "ok" ? "completed" : "failed" : "in_progress";
  const ownItem = providerItem(isObject(meta) ? meta : {}, result); // as OpenAI made it
  if (typeof ownItem?.type === "string") return { ...ownItem, type: ownItem.type, status };
  const output = result?.output ?? null;
  const fields = isObject(input) ? input : {};
  const { query = "", queries = [query] } = fields;
  const item = { id, status };
  if (name === "web_search" && server === undefined) {
    return { ...item, type: "web_search_call", action: fields.type ? fields : { type: "search", queries } };
  }
  if (name === "file_search" && server === undefined) {
    return { ...item, type: "file_search_call", queries, results: Array.isArray(output) ? output : null };
  }
  if (name === "code_execution" && server === undefined) {
    const code = typeof fields.code === "string" && fields.code !== "" ? fields.code : JSON.stringify(input);
    const outputs = Array.isArray(output) ? output : result && [{ type: "logs", logs: textOf(output) }];
    return { ...item, type: "code_interpreter_call", code, container_id: "", outputs: outputs ?? null };
  }
  const failed = result?.status === "error";
  return {
    ...item,
    type: "mcp_call",
    server_label: server ?? "provider",
    name,
    arguments: JSON.stringify(input),
    output: result && !failed ? textOf(output) : null,
    error: failed ? textOf(output) : null,
  };
}

function textOf(output: Json): string {
  return typeof output === "string" ? output : JSON.stringify(output);
}

// The items of calls that the provider of the model runs.

/** Encodes the calls of one response. */
interface CallItems {
  /** Encodes a call, and adds its item to the output. */
  start(call: ProviderCallPart): string;
  /** Encodes the result of a call, and replaces its item. */
  end(result: ProviderResultPart): string;
  /** Ends the calls without a result whose items were removed from the output: a client waits for the end of each. */
  closeRemoved(): string;
}

/** A call and its item. */
interface StartedCall {
  readonly call: ProviderCallPart;
  readonly item: OutputItem;
  readonly output_index: number;
}

/** Creates the encoder of the calls of `output`. */
function callItems({ items, place, frame }: ResponseOutput): CallItems {
  const calls = new Map<string, StartedCall>();
  /** The calls without a result. */
  const openCalls = new Map<string, StartedCall>();

  function start(call: ProviderCallPart): string {
    const { output_index } = place();
    const item = builtInItem(call);
    items.push(item);
    const started = { call, item, output_index };
    calls.set(call.callId, started);
    openCalls.set(call.callId, started);
    return frame("output_item.added", { output_index, item });
  }

  function end(result: ProviderResultPart): string {
    const { callId, name } = result;
    const started = calls.get(callId);
    if (!started) return start({ type: "provider_call", callId, name, input: {} }) + end(result); // a result without a call
    return replace(started, builtInItem(started.call, result));
  }

  function replace({ call, item, output_index }: StartedCall, ended: OutputItem): string {
    openCalls.delete(call.callId);
    const index = items.indexOf(item); // -1 if the turn began again
    if (index >= 0) items[index] = ended;
    return frame("output_item.done", { output_index, item: ended });
  }

  function closeRemoved(): string {
    const removed = [...openCalls.values()].filter(({ item }) => !items.includes(item));
    // a search has no status "incomplete"
    return removed.map((started) => {
      const status = started.item.type === "web_search_call" ? "failed" : "incomplete";
      return replace(started, { ...started.item, status });
    }).join("");
  }

  return { start, end, closeRemoved };
}

// An item with text that is streamed: a message, or reasoning.

/** The kind of a text. */
type TextKind = "output_text" | "reasoning_text";

/** An item that is streamed. Its text is a part of its content from the first delta or source on. */
interface TextItem {
  /** The kind of its text. */
  readonly kind: TextKind;
  /** The log probabilities of its text. */
  readonly logprobs: object[];
  /** The text so far. */
  text(): string;
  /** Encodes the start of the item. */
  start(): string;
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
function textItem({ items, place, sequence, frame }: ResponseOutput, kind: TextKind): TextItem {
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
    start: () => frame("output_item.added", { output_index, item: itemOf("in_progress", []) }),
    delta(piece) {
      const frames = beginText();
      const json = JSON.stringify(piece);
      text += piece;
      return `${frames}data: {"type":"response.${kind}.delta","sequence_number":${sequence()},${atJson},"delta":${json}}\n\n`;
    },
    source({ url, title = "" }) {
      const frames = beginText();
      const annotation = url === undefined
        ? { type: "file_citation", file_id: "", filename: title, index: text.length }
        : { type: "url_citation", url, title, start_index: 0, end_index: text.length };
      const annotation_index = annotations.push(annotation) - 1;
      return frames + frame("output_text.annotation.added", { ...at, annotation_index, annotation });
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

// The items of one response, in the order of its events.

/** Encodes the output items of one response. */
interface ItemEncoder {
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
  let openText: TextItem | undefined;
  let message: TextItem | undefined;
  /** The sources for the next message: a message without text would not parse as a structured answer. */
  let pendingSources: SourcePart[] = [];
  /** The parts in messages of the turn, which stay if the text of the turn is replaced. */
  let pendingParts: AddedPart[] = [];
  /** The number of items, the newest message and the held sources before the turn. */
  let before = { length: 0, message, pendingSources };

  /** Returns the open item of this kind, or a new one with the frames that begin it. */
  function itemFor(kind: TextKind): readonly [item: TextItem, opening: string] {
    if (openText?.kind === kind) return [openText, ""];
    const closed = close();
    openText = textItem(output, kind);
    return [openText, closed + openText.start()];
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
    const sources = pendingSources;
    pendingSources = [];
    return sources.map(item.source).join("");
  }

  function close(status = "completed"): string {
    const closed = openText?.end(status) ?? "";
    openText = undefined;
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
    pendingSources = [...before.pendingSources];
    pendingParts = [];
  }

  function part(part: AddedPart): string {
    switch (part.type) {
      case "source":
        pendingParts.push(part);
        pendingSources.push(part);
        return openText && openText === message ? annotate(openText) : "";
      case "logprobs":
        openText?.logprobs.push(...encodeTokens(part.tokens));
        return "";
      case "refusal":
        pendingParts.push(part);
        return addContent({ type: "refusal", refusal: part.text });
      case "media": {
        const image = imageItem(part);
        if (image) return close() + add(image);
        pendingParts.push(part);
        return addContent(fileContent(part, openText?.text()));
      }
      case "provider_call":
        return close() + calls.start(part);
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
      const parts = pendingParts;
      items.push(...items.splice(before.length).filter(({ type }) => type !== "message"));
      rewind();
      return closed + delta("output_text", text) + parts.map(part).join("") + close(status);
    },
    part,
    add,
    close,
    finish(answer) {
      const rest = message ? "" : delta("output_text", answer);
      if (pendingSources.length === 0) return rest;
      const [item, opening] = message ? [message, ""] : itemFor("output_text");
      return rest + opening + annotate(item);
    },
    mark() {
      before = { length: items.length, message, pendingSources: [...pendingSources] };
      pendingParts = [];
    },
    discard() {
      const closed = close("incomplete");
      items.splice(before.length);
      rewind();
      return closed + calls.closeRemoved();
    },
  };
}
