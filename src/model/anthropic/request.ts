/**
 * Converts requests to the body of the messages API.
 *
 * @module
 */
import type { AssistantMessage, CallResult, Message } from "../../protocol/message.ts";
import type { AnswerPart, ContentPart, Json, MediaPart } from "../../protocol/part.ts";
import { isObject, type UnknownObject } from "../../protocol/shape.ts";
import type { ModelRequest, ToolDefinition } from "../model.ts";
import { readNote } from "../provider_note.ts";
import { providerNotice } from "../provider_tools.ts";
import { callInput, fileNotice, generatedFileNotice, openingNotice, toolSchema } from "../request.ts";

/** The tool that searches deferred tools. */
const toolSearch = { type: "tool_search_tool_bm25_20251119", name: "tool_search_tool_bm25" };

/** Whether an entry among the tools, or a call, is of such a tool. */
function isSearch({ name }: { readonly name?: unknown }): boolean {
  return /^tool_search_tool_(bm25|regex)$/.test(String(name));
}

/** Whether a model is of Claude 4 or later. */
function isClaude4(model: string): boolean {
  return /\bclaude-(?!\d|instant|v\d)/.test(model);
}

/** Whether the provider searches the deferred tools of a model: it does for those since Claude 4.5. */
export function defers(model: string): boolean {
  return isClaude4(model) && !/\bclaude-(opus|sonnet|haiku)-4(?![-.][5-9])/.test(model);
}

/** Returns the fields of a request. `mark` is the cache control of the blocks up to which the provider caches, `builtIn` its own tools. */
export function requestFields(
  { instructions, messages, tools }: ModelRequest,
  model: string,
  mark: UnknownObject,
  builtIn: readonly UnknownObject[],
): UnknownObject {
  const toolFields = tools.map((tool) => toolOf(tool, model));
  const isSearched = toolFields.some((tool) => tool.defer_loading) && !builtIn.some(isSearch);
  const allTools = [...builtIn, ...(isSearched ? [toolSearch] : []), ...toolFields];
  return {
    model,
    ...(instructions !== "" && { system: [{ type: "text", text: instructions, ...mark }] }),
    messages: turnsOf(messages, { model, tools: allTools }, mark),
    ...(allTools.length > 0 && { tools: allTools }),
    stream: true,
  };
}

/** Converts a definition. Only Claude knows the tools of Anthropic: compatible servers also have other models. */
function toolOf(tool: ToolDefinition, model: string): UnknownObject {
  const { name, description, deferred, apis } = tool;
  const known = isClaude4(model) ? apis?.anthropic : undefined;
  const entry = known ?? { name, description, input_schema: toolSchema(tool) };
  return { ...entry, ...(defers(model) && deferred && { defer_loading: true }) };
}

/** The receiver of a message: a model, and the tools that it is sent. */
interface Target {
  readonly model: string;
  readonly tools: readonly UnknownObject[];
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
function turnsOf(messages: readonly Message[], target: Target, mark: UnknownObject): readonly Turn[] {
  const last = messages.findLastIndex(isRepeated);
  const answer = messages.findLastIndex(({ role }, index) => role === "assistant" && index < last);
  const previous = messages.findLastIndex((message, index) => index < answer && isRepeated(message));
  const prompt = messages.findLastIndex(({ role }) => role === "user");
  const turns: Turn[] = [];
  for (const [index, message] of messages.entries()) {
    const role = message.role === "assistant" ? message.role : "user";
    const blocks = blocksOf(message, target, index > prompt);
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

function blocksOf(message: Message, target: Target, isOpen: boolean): UnknownObject[] {
  switch (message.role) {
    case "user":
      return contentOf(message.parts);
    case "assistant":
      return assistantBlocks(message, target, isOpen);
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
function assistantBlocks({ parts }: AssistantMessage, target: Target, isOpen: boolean): UnknownObject[] {
  const isPaired = (part: AnswerPart) =>
    isOpen ||
    parts.some((each) => each !== part && "callId" in each && "callId" in part && each.callId === part.callId);
  const blocks: UnknownObject[] = [];
  const notes = parts.map((part) => readNote(part, target.model));
  for (const [at, part] of parts.entries()) {
    const { citations, text = citations && { citations } }: UnknownObject = notes[at] ?? {}; // older notes have no `text`
    const last = blocks.at(-1);
    if (text && last?.type === "text") blocks.splice(-1, 1, { ...last, ...Object(text) });
    else if (part.type === "call") {
      const caller = notes.find(({ callId }) => callId === part.id)?.caller;
      blocks.push(...assistantBlock(part, target, true).map((block) => caller ? { ...block, caller } : block));
    } else blocks.push(...assistantBlock(part, target, isPaired(part)));
  }
  return blocks.some(({ type }) => !/thinking$/.test(String(type))) ? blocks : [];
}

function assistantBlock(part: AnswerPart, { model, tools }: Target, isPaired: boolean): readonly UnknownObject[] {
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
      const isLost = isSearch(part) && !tools.some(isSearch); // a search of tools that are no longer deferred
      if (!isObject(block) || !isPaired || isLost) return textOf(providerNotice(part));
      if (part.type === "provider_result") {
        return [{ ...block, tool_use_id: part.callId, content: withoutLostTools(part.output, tools) }];
      }
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

/** Removes from the result of a search the tools that are no longer deferred, or gone: the API rejects a reference to them. */
function withoutLostTools(output: Json, tools: readonly UnknownObject[]): unknown {
  const { tool_references: found }: UnknownObject = isObject(output) ? output : {};
  if (!Array.isArray(found)) return output;
  const deferred = new Set(tools.filter((tool) => tool.defer_loading).map(({ name }) => name));
  return { ...Object(output), tool_references: found.filter((reference) => deferred.has(Object(reference).tool_name)) };
}

/** Replaces the characters that this API rejects in an id of another provider. */
function idOf(id: string): string {
  return id.replace(/[^\w-]/g, (character) => `_${character.charCodeAt(0).toString(16)}`);
}
