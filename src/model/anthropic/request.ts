/**
 * Converts requests to the body of the messages API.
 *
 * @module
 */
import type {
  AnswerPart,
  AssistantMessage,
  CallResult,
  ContentPart,
  MediaPart,
  Message,
} from "../../protocol/message.ts";
import { isObject, type UnknownObject } from "../../protocol/unknown_json.ts";
import type { ModelRequest, ToolDefinition } from "../model.ts";
import { callInput, fileNotice, toolSchema } from "../request_parts.ts";
import { strictSchema } from "../strict_schema.ts";

/** Returns the fields of a request. `mark` is the cache control of the blocks up to which the provider caches. */
export function requestFields(
  { instructions, messages, tools, options }: ModelRequest,
  model: string,
  mark: UnknownObject,
): UnknownObject {
  const schema = strictSchema(options.output);
  return {
    model,
    ...(instructions !== "" && { system: [{ type: "text", text: instructions, ...mark }] }),
    messages: turnsOf(messages, mark),
    ...(tools.length > 0 && { tools: tools.map(toolOf) }),
    ...(schema?.type === "object" && { output_config: { format: { type: "json_schema", schema } } }),
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

/** Merges messages into turns. The mark goes on the last message that the next request repeats, not on context for this turn alone. */
function turnsOf(messages: readonly Message[], mark: UnknownObject): readonly Turn[] {
  const last = messages.findLastIndex((message) => message.role !== "user" || message.from !== "turn");
  const turns: Turn[] = [];
  for (const [index, message] of messages.entries()) {
    const role = message.role === "assistant" ? message.role : "user";
    const blocks = blocksOf(message);
    const content = index === last && role === "user" ? marked(blocks, mark) : blocks;
    const turn = turns.at(-1);
    if (turn?.role === role) turn.content.push(...content);
    else if (content.length > 0) turns.push({ role, content });
  }
  return turns;
}

function marked(blocks: readonly UnknownObject[], mark: UnknownObject): UnknownObject[] {
  return blocks.map((block, index) => index === blocks.length - 1 ? { ...block, ...mark } : block);
}

function blocksOf(message: Message): UnknownObject[] {
  switch (message.role) {
    case "user":
      return contentOf(message.parts);
    case "assistant":
      return assistantBlocks(message);
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

/** Converts what the model wrote. Reasoning without text or calls is left out. */
function assistantBlocks({ parts }: AssistantMessage): UnknownObject[] {
  const blocks = parts.flatMap(assistantBlock);
  return blocks.some(({ type }) => type === "text" || type === "tool_use") ? blocks : [];
}

function assistantBlock(part: AnswerPart): readonly UnknownObject[] {
  switch (part.type) {
    case "text":
      return textOf(part.text);
    case "call":
      return [{ type: "tool_use", id: idOf(part.id), name: part.name, input: callInput(part) }];
    case "reasoning": {
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
