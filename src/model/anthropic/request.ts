/**
 * Converts requests to the body of the messages API.
 *
 * @module
 */
import type { AssistantMessage, CallResult, Message } from "../../protocol/message.ts";
import type { AnswerPart, ContentPart, MediaPart } from "../../protocol/part.ts";
import { isObject, type UnknownObject } from "../../protocol/unknown_json.ts";
import type { ModelRequest, ToolDefinition } from "../model.ts";
import { readNote } from "../provider_note.ts";
import { providerNotice } from "../provider_tools.ts";
import { callInput, fileNotice, generatedFileNotice, openingNotice, toolSchema } from "../request_parts.ts";

/** Returns the fields of a request. `mark` is the cache control of the blocks up to which the provider caches, `builtIn` its own tools. */
export function requestFields(
  { instructions, messages, tools }: ModelRequest,
  model: string,
  mark: UnknownObject,
  builtIn: readonly UnknownObject[],
): UnknownObject {
  const allTools = [...builtIn, ...tools.map(toolOf)];
  return {
    model,
    ...(instructions !== "" && { system: [{ type: "text", text: instructions, ...mark }] }),
    messages: turnsOf(messages, model, mark),
    ...(allTools.length > 0 && { tools: allTools }),
    stream: true,
  };
}

function toolOf(tool: ToolDefinition): UnknownObject {
  const { name, description } = tool;
  return { name, description, input_schema: toolSchema(tool) };
}

/** Consecutive content of one role, which the API wants in one message. */
interface Turn {
  readonly role: "user" | "assistant";
  readonly content: UnknownObject[];
}

/**
 * Merges messages into turns. Two messages are marked: the last one that the next request repeats, which excludes context for this turn alone, and the one that
 * the previous request marked. The provider looks for a cached prefix only a few blocks back, so a batch of many results would miss it otherwise.
 */
function turnsOf(messages: readonly Message[], model: string, mark: UnknownObject): readonly Turn[] {
  const last = messages.findLastIndex(isRepeated);
  const answer = messages.findLastIndex(({ role }, index) => role === "assistant" && index < last);
  const previous = messages.findLastIndex((message, index) => index < answer && isRepeated(message));
  const prompt = messages.findLastIndex(({ role }) => role === "user");
  const turns: Turn[] = [];
  for (const [index, message] of messages.entries()) {
    const role = message.role === "assistant" ? message.role : "user";
    const blocks = blocksOf(message, model, index > prompt);
    const isMarked = (index === last || index === previous) && role === "user";
    const content = isMarked ? marked(blocks, mark) : blocks;
    const turn = turns.at(-1);
    if (turn?.role === role) turn.content.push(...content);
    else if (content.length > 0) turns.push({ role, content });
  }
  const text = turns[0]?.role === "assistant" ? openingNotice(messages) : undefined;
  return text === undefined ? turns : [{ role: "user", content: [{ type: "text", text }] }, ...turns];
}

function isRepeated(message: Message): boolean {
  return message.role !== "user" || message.from !== "turn";
}

function marked(blocks: readonly UnknownObject[], mark: UnknownObject): UnknownObject[] {
  return blocks.map((block, index) => index === blocks.length - 1 ? { ...block, ...mark } : block);
}

function blocksOf(message: Message, model: string, isOpen: boolean): UnknownObject[] {
  switch (message.role) {
    case "user":
      return contentOf(message.parts);
    case "assistant":
      return assistantBlocks(message, model, isOpen);
    case "tool":
      return message.results.map(resultOf);
  }
}

function contentOf(parts: readonly ContentPart[]): UnknownObject[] {
  return parts.flatMap((part) => part.type === "text" ? textOf(part.text) : [fileOf(part)]);
}

/** The API rejects blank text. */
function textOf(text: string): readonly UnknownObject[] {
  return text.trim() === "" ? [] : [{ type: "text", text }];
}

function fileOf(part: MediaPart): UnknownObject {
  const { mediaType, data, url } = part;
  const type = mediaType.startsWith("image/") ? "image" : mediaType === "application/pdf" ? "document" : undefined;
  if (!type) return { type: "text", text: fileNotice(part) };
  const source = url === undefined ? { type: "base64", media_type: mediaType, data } : { type: "url", url };
  return { type, source };
}

function resultOf({ callId, status, parts }: CallResult): UnknownObject {
  return {
    type: "tool_result",
    tool_use_id: idOf(callId),
    content: contentOf(parts),
    ...(status !== "ok" && { is_error: true }),
  };
}

/**
 * Converts what the model wrote. Reasoning without text, calls or blocks of the provider's tools is left out. The API rejects a call of its own tools without a
 * result, such as the last one of a response that reached its limit, unless the response is open: the result may follow.
 */
function assistantBlocks({ parts }: AssistantMessage, model: string, isOpen: boolean): UnknownObject[] {
  const isPaired = (part: AnswerPart) =>
    isOpen ||
    parts.some((each) => each !== part && "callId" in each && "callId" in part && each.callId === part.callId);
  const blocks: UnknownObject[] = [];
  const notes = parts.map((part) => readNote(part, model));
  for (const [at, part] of parts.entries()) {
    const { citations, text = citations && { citations } }: UnknownObject = notes[at] ?? {}; // older notes have no `text`
    const last = blocks.at(-1);
    if (text && last?.type === "text") blocks.splice(-1, 1, { ...last, ...Object(text) });
    else if (part.type === "call") {
      const caller = notes.find(({ callId }) => callId === part.id)?.caller;
      blocks.push(...assistantBlock(part, model, true).map((block) => caller ? { ...block, caller } : block));
    } else blocks.push(...assistantBlock(part, model, isPaired(part)));
  }
  return blocks.some(({ type }) => !/thinking$/.test(String(type))) ? blocks : [];
}

function assistantBlock(part: AnswerPart, model: string, isPaired: boolean): readonly UnknownObject[] {
  switch (part.type) {
    case "text":
      return textOf(part.text);
    case "media":
      return textOf(generatedFileNotice(part));
    case "source":
    case "refusal":
    case "logprobs":
      return [];
    case "provider_call":
    case "provider_result": {
      const { block } = readNote(part, model);
      if (!isObject(block) || !isPaired) return textOf(providerNotice(part));
      if (part.type === "provider_result") return [{ ...block, tool_use_id: part.callId, content: part.output }];
      const { callId: id, name, server, input } = part;
      return [{ ...block, id, name, ...(server && { server_name: server }), input }];
    }
    case "call":
      return [{ type: "tool_use", id: idOf(part.id), name: part.name, input: callInput(part) }];
    case "reasoning": {
      const { block } = readNote(part, model);
      if (isObject(block)) return [block];
      const { signature, redacted } = isObject(part.meta) ? part.meta : {};
      if (redacted) return [{ type: "redacted_thinking", data: redacted }];
      return signature ? [{ type: "thinking", thinking: part.text, signature }] : []; // reasoning of another provider has no signature
    }
  }
}

/** Replaces the characters that this API rejects in an id of another provider. */
function idOf(id: string): string {
  return id.replace(/[^\w-]/g, (character) => `_${character.charCodeAt(0).toString(16)}`);
}
