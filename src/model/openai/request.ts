/**
 * Requests for chat completions.
 *
 * @module
 */
import {
  type AssistantMessage,
  type CallResult,
  type ContentPart,
  type MediaPart,
  type Message,
  textOf,
} from "../../protocol/message.ts";
import type { Fields } from "../fields.ts";
import type { ModelRequest, ToolDefinition } from "../model.ts";
import { strict } from "../strict.ts";
import { inputOf, schemaOf, unseen } from "../told.ts";
import { noteOf } from "./note.ts";

/** What `model` is told: the conversation, its tools, and the form of its answer. `own` is whether it is the vendor's, and not one of the compatible. */
export function requestOf(
  { instructions, messages, tools, options }: ModelRequest,
  model: string,
  own: boolean,
): Fields {
  const system = instructions === "" ? [] : [{ role: "system", content: instructions }];
  const format = options.output && formatOf(options.output);
  return {
    model,
    messages: [...system, ...messages.flatMap((message) => messagesOf(message, model))],
    ...(tools.length > 0 && { tools: tools.map(toolOf) }),
    // where a grammar does it, a form that is asked for leaves no way to call a tool
    ...(format && (own || tools.length === 0) && { response_format: format }),
    stream: true,
    stream_options: { include_usage: true },
  };
}

function toolOf(tool: ToolDefinition): Fields {
  const { name, description } = tool;
  return { type: "function", function: { name, description, parameters: schemaOf(tool) } };
}

/** The form of an answer, which has to be an object. */
function formatOf(schema: Fields): Fields | undefined {
  if (schema.type !== "object") return undefined;
  const exact = strict(schema);
  return {
    type: "json_schema",
    json_schema: { name: "output", strict: exact !== undefined, schema: exact ?? schemaOf({ schema }) },
  };
}

function messagesOf(message: Message, model: string): readonly Fields[] {
  switch (message.role) {
    case "user":
      return [{ role: "user", content: contentOf(message.parts) }];
    case "assistant":
      return answersOf(message, model);
    case "tool":
      return [
        ...message.results.map((result) => ({ role: "tool", tool_call_id: result.callId, content: textOf(result) })),
        ...filesOf(message.results),
      ];
  }
}

/** One text stays a text, which every server takes. */
function contentOf(parts: readonly ContentPart[]): string | readonly Fields[] {
  return parts.length > 1 || parts[0]?.type === "media" ? parts.map(partOf) : textOf({ parts });
}

function partOf(part: ContentPart): Fields {
  if (part.type === "text") return { type: "text", text: part.text };
  const { mediaType, data } = part;
  if (mediaType.startsWith("image/")) return { type: "image_url", image_url: { url: addressOf(part) } };
  if (mediaType === "application/pdf" && data !== undefined) {
    return { type: "file", file: { filename: "file.pdf", file_data: addressOf(part) } };
  }
  const format = /^audio\/(?:x-)?(wav|mp3|mpeg)$/.exec(mediaType)?.[1]?.replace("mpeg", "mp3");
  if (format && data !== undefined) return { type: "input_audio", input_audio: { data, format } };
  return { type: "text", text: unseen(part) };
}

/** Where a file is: its own address, or one that holds its bytes. */
function addressOf({ mediaType, data = "", url }: MediaPart): string {
  return url ?? `data:${mediaType};base64,${data}`;
}

/** The files among results, which may hold none themselves: as something that the user shows, after all of them. */
function filesOf(results: readonly CallResult[]): readonly Fields[] {
  const content = results.flatMap(({ callId, name, parts }) => {
    const files = parts.filter(({ type }) => type === "media");
    return files.length > 0 ? [{ type: "text", text: `From ${name}, call ${callId}:` }, ...files.map(partOf)] : [];
  });
  return content.length > 0 ? [{ role: "user", content }] : [];
}

/** What the model said, and with it what it had noted. */
function answersOf(message: AssistantMessage, model: string): readonly Fields[] {
  const content = textOf(message);
  const calls: Fields[] = [];
  const thought: Record<string, string> = {};
  let extra: unknown;
  for (const part of message.parts) {
    const { field, call } = noteOf(part, model);
    if (part.type === "call") {
      const { id, name } = part;
      calls.push({
        id,
        type: "function",
        function: { name, arguments: JSON.stringify(inputOf(part)) },
        extra_content: extra,
      });
      extra = undefined;
    } else if (field) thought[field] = (thought[field] ?? "") + part.text;
    else extra = call ?? extra;
  }
  if (content === "" && calls.length === 0) return [];
  return [{ role: "assistant", content, ...thought, ...(calls.length > 0 && { tool_calls: calls }) }];
}
