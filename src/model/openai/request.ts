/**
 * Converts requests to the body of chat completions.
 *
 * @module
 */
import type { ModelRequest, ToolDefinition } from "../model.ts";
import { readNote } from "../provider_note.ts";
import { providerNotice } from "../provider_tools.ts";
import { callInput, fileNotice, generatedFileNotice, strictSchema, toolSchema } from "../request.ts";
import { type AssistantMessage, type CallResult, type Message, textOf } from "../../protocol/message.ts";
import type { ContentPart, MediaPart } from "../../protocol/part.ts";
import type { UnknownObject } from "../../protocol/shape.ts";

// Reasoning in chat completions: the members that hold it, and the notes with which it is sent back.

/** The members in which servers stream reasoning as text. The first that has text is used, and its name is noted to send the reasoning back. */
export const reasoningFields = ["reasoning_content", "reasoning"] as const;

/** The members in which gateways stream reasoning as a list, with its signatures. It is sent back unchanged. The first is that of OpenRouter, the second that of LiteLLM. */
export const reasoningLists = ["reasoning_details", "thinking_blocks"] as const;

/** The type of a part that holds reasoning in content that is a list. It is noted as the field of the reasoning. */
export const thinking = "thinking";

/** The members of an item that hold its text, and continue from chunk to chunk. */
const texts = ["text", "summary", "thinking"] as const;

/** Returns the text of an item; an empty string for one that is encrypted. */
function itemText(item: UnknownObject): string {
  return texts.map((name) => item[name]).find((text): text is string => typeof text === "string") ?? "";
}

/** Adds an item of a chunk to the items before it; a piece of the last item continues it. Returns the text that it adds. */
export function addItem(items: UnknownObject[], item: UnknownObject): string {
  const last = items.at(-1);
  const text = itemText(item);
  if (!last || !continues(last, item)) {
    items.push(item);
    return text;
  }
  const isRepeated = Boolean(item.signature) && text === itemText(last); // a chunk with the signature may repeat the whole text
  const joined: Record<string, unknown> = { ...last };
  for (const [name, value] of Object.entries(item)) {
    if ((value ?? "") === "") continue;
    const isText = texts.some((text) => text === name);
    joined[name] = isText && !isRepeated ? `${last[name] ?? ""}${value}` : value;
  }
  items[items.length - 1] = joined;
  return isRepeated ? "" : text;
}

/** Whether `item` is a piece of `last`: of its type, index and id, and not after its signature. Encrypted items have no pieces. */
function continues(last: UnknownObject, item: UnknownObject): boolean {
  const same = ["type", "index", "id"].every((name) => (item[name] ?? last[name]) === last[name]);
  return same && item.data === undefined && !(last.signature && itemText(item) !== "");
}

// The body of a request: the transcript, the tools and the options in the form of chat completions.

/** Returns the fields of a request. `isOpenAi` is true for OpenAI's servers and false for compatible ones. */
export function requestFields(
  { instructions, messages, tools, options }: ModelRequest,
  model: string,
  isOpenAi: boolean,
): UnknownObject {
  const system = instructions === "" ? [] : [{ role: "system", content: instructions }];
  const format = options.output && formatOf(options.output);
  return {
    model,
    messages: [...system, ...messages.flatMap((message) => messagesOf(message, model))],
    ...(tools.length > 0 && { tools: tools.map(toolOf) }),
    // servers that enforce a schema by grammar cannot call tools beside it
    ...(format && (isOpenAi || tools.length === 0) && { response_format: format }),
    stream: true,
    stream_options: { include_usage: true },
  };
}

function toolOf(tool: ToolDefinition): UnknownObject {
  const { name, description } = tool;
  return { type: "function", function: { name, description, parameters: toolSchema(tool) } };
}

/** Returns the response format for a schema. The API accepts only objects. */
function formatOf(schema: UnknownObject): UnknownObject | undefined {
  if (schema.type !== "object") return undefined;
  const exact = strictSchema(schema);
  return {
    type: "json_schema",
    json_schema: { name: "output", strict: exact !== undefined, schema: exact ?? toolSchema({ schema }) },
  };
}

function messagesOf(message: Message, model: string): readonly UnknownObject[] {
  switch (message.role) {
    case "user":
      return [{ role: "user", content: contentOf(message.parts) }];
    case "assistant":
      return assistantMessages(message, model);
    case "tool":
      return [
        ...message.results.map((result) => ({ role: "tool", tool_call_id: result.callId, content: textOf(result) })),
        ...filesOf(message.results),
      ];
  }
}

/** Keeps a single text as a string: some servers accept nothing else. */
function contentOf(parts: readonly ContentPart[]): string | readonly UnknownObject[] {
  return parts.length > 1 || parts[0]?.type === "media" ? parts.map(partOf) : textOf({ parts });
}

function partOf(part: ContentPart): UnknownObject {
  if (part.type === "text") return { type: "text", text: part.text };
  const { mediaType, data } = part;
  if (mediaType.startsWith("image/")) return { type: "image_url", image_url: { url: fileUrl(part) } };
  if (mediaType === "application/pdf" && data !== undefined) {
    return { type: "file", file: { filename: "file.pdf", file_data: fileUrl(part) } };
  }
  const format = /^audio\/(?:x-)?(wav|mp3|mpeg)$/.exec(mediaType)?.[1]?.replace("mpeg", "mp3");
  if (format && data !== undefined) return { type: "input_audio", input_audio: { data, format } };
  return { type: "text", text: fileNotice(part) };
}

/** Returns the address of a file, or a data URL of its bytes. */
function fileUrl({ mediaType, data = "", url }: MediaPart): string {
  return url ?? `data:${mediaType};base64,${data}`;
}

/** Moves the files among results to a user message after them, since results hold only text. */
function filesOf(results: readonly CallResult[]): readonly UnknownObject[] {
  const content = results.flatMap(({ callId, name, parts }) => {
    const files = parts.filter(({ type }) => type === "media");
    return files.length > 0 ? [{ type: "text", text: `From ${name}, call ${callId}:` }, ...files.map(partOf)] : [];
  });
  return content.length > 0 ? [{ role: "user", content }] : [];
}

/** Converts what the model wrote, with the notes that came from the same model. */
function assistantMessages(message: AssistantMessage, model: string): readonly UnknownObject[] {
  const recording = message.parts.map((part) => readNote(part, model).audio).find(Boolean);
  const files = message.parts.flatMap((part) =>
    part.type === "media" && !readNote(part, model).audio ? [generatedFileNotice(part)] : []
  );
  const notices = message.parts.flatMap((part) =>
    part.type === "provider_call" || part.type === "provider_result" ? [providerNotice(part)] : []
  );
  const written = [...notices, textOf(message), ...files].filter((text) => text !== "").join("\n");
  const calls: UnknownObject[] = [];
  const reasoning: Record<string, string> = {};
  const items: Record<string, unknown[]> = {};
  let thought = "";
  let extra: unknown;
  let messageExtra: unknown;
  for (const part of message.parts) {
    const { field: noted, call, extra: ofMessage, ...lists } = readNote(part, model);
    messageExtra ??= ofMessage;
    for (const name of reasoningLists) if (Array.isArray(lists[name])) (items[name] ??= []).push(...lists[name]);
    const field = reasoningFields.find((name) => name === noted);
    if (part.type === "call") {
      const { id, name } = part;
      calls.push({
        id,
        type: "function",
        function: { name, arguments: JSON.stringify(callInput(part)) },
        extra_content: extra,
      });
      extra = undefined;
    } else if (field && part.type === "reasoning") reasoning[field] = (reasoning[field] ?? "") + part.text;
    else if (noted === thinking && part.type === "reasoning") thought += part.text;
    else extra = call ?? extra;
  }
  if (written === "" && calls.length === 0) return [];
  const audio = recording !== undefined && { audio: { id: recording } };
  const content = thought === "" ? written : thinkingAndText(thought, written);
  const more = { ...audio, ...reasoning, ...items, extra_content: messageExtra };
  return [{ role: "assistant", content, ...more, ...(calls.length > 0 && { tool_calls: calls }) }];
}

/** Returns reasoning and the text after it as a list of parts. */
function thinkingAndText(thought: string, text: string): readonly UnknownObject[] {
  const texts = text === "" ? [] : [{ type: "text", text }];
  return [{ type: thinking, thinking: [{ type: "text", text: thought }] }, ...texts];
}
