/**
 * Requests for the messages API.
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
import { type Fields, isFields } from "../fields.ts";
import type { ModelRequest, ToolDefinition } from "../model.ts";
import { strict } from "../strict.ts";
import { inputOf, schemaOf, unseen } from "../told.ts";

/** What `model` is told: the conversation, its tools, and the form of its answer. `mark` is what a block has up to which the provider is to remember. */
export function requestOf(
  { instructions, messages, tools, options }: ModelRequest,
  model: string,
  mark: Fields,
): Fields {
  const schema = strict(options.output);
  return {
    model,
    ...(instructions !== "" && { system: [{ type: "text", text: instructions, ...mark }] }),
    messages: turnsOf(messages, mark),
    ...(tools.length > 0 && { tools: tools.map(toolOf) }),
    ...(schema?.type === "object" && { output_config: { format: { type: "json_schema", schema } } }),
    stream: true,
  };
}

function toolOf(tool: ToolDefinition): Fields {
  const { name, description } = tool;
  return { name, description, input_schema: schemaOf(tool) };
}

/** What one side says before the other does. */
interface Turn {
  readonly role: "user" | "assistant";
  readonly content: Fields[];
}

/** The conversation in turns. The mark is on the last that will be there next time too, and so on nothing that this request alone adds. */
function turnsOf(messages: readonly Message[], mark: Fields): readonly Turn[] {
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

function marked(blocks: readonly Fields[], mark: Fields): Fields[] {
  return blocks.map((block, index) => index === blocks.length - 1 ? { ...block, ...mark } : block);
}

function blocksOf(message: Message): Fields[] {
  switch (message.role) {
    case "user":
      return contentOf(message.parts);
    case "assistant":
      return saidIn(message);
    case "tool":
      return message.results.map(resultOf);
  }
}

function contentOf(parts: readonly ContentPart[]): Fields[] {
  return parts.flatMap((part) => part.type === "text" ? textOf(part.text) : [fileOf(part)]);
}

/** A block of text may not be blank. */
function textOf(text: string): readonly Fields[] {
  return text.trim() === "" ? [] : [{ type: "text", text }];
}

function fileOf(part: MediaPart): Fields {
  const { mediaType, data, url } = part;
  const type = mediaType.startsWith("image/") ? "image" : mediaType === "application/pdf" ? "document" : undefined;
  if (!type) return { type: "text", text: unseen(part) };
  const source = url === undefined ? { type: "base64", media_type: mediaType, data } : { type: "url", url };
  return { type, source };
}

function resultOf({ callId, status, parts }: CallResult): Fields {
  return {
    type: "tool_result",
    tool_use_id: idOf(callId),
    content: contentOf(parts),
    ...(status !== "ok" && { is_error: true }),
  };
}

/** What the model said; thought that led to nothing is not sent back. */
function saidIn({ parts }: AssistantMessage): Fields[] {
  const blocks = parts.flatMap(answerOf);
  return blocks.some(({ type }) => type === "text" || type === "tool_use") ? blocks : [];
}

function answerOf(part: AnswerPart): readonly Fields[] {
  switch (part.type) {
    case "text":
      return textOf(part.text);
    case "call":
      return [{ type: "tool_use", id: idOf(part.id), name: part.name, input: inputOf(part) }];
    case "reasoning": {
      const { signature, redacted } = isFields(part.meta) ? part.meta : {};
      if (redacted) return [{ type: "redacted_thinking", data: redacted }];
      return signature ? [{ type: "thinking", thinking: part.text, signature }] : []; // another provider's is not taken
    }
  }
}

/** An id of another provider in the characters that this one takes. */
function idOf(id: string): string {
  return id.replace(/[^\w-]/g, (character) => `_${character.charCodeAt(0).toString(16)}`);
}
