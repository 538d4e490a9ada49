/**
 * Converts requests to the body of the Responses API.
 *
 * @module
 */
import { type CallResult, type Message, providerResultOf, textOf } from "../../protocol/message.ts";
import type { AnswerPart, ContentPart, ProviderCallPart, ProviderResultPart } from "../../protocol/part.ts";
import { isObject, type UnknownObject } from "../../protocol/shape.ts";
import type { ModelRequest, ToolDefinition } from "../model.ts";
import { readNote } from "../provider_note.ts";
import { providerNotice } from "../provider_tools.ts";
import { callInput, fileNotice, generatedFileNotice, toolSchema } from "../request_parts.ts";
import { strictSchema } from "../strict_schema.ts";
import { approvalItem, builtInItem } from "./built_in_tools.ts";

/** Whether the provider searches the deferred tools of a model: it does for those since GPT 5.4, without the nano ones. */
export function defers(model: string): boolean {
  return /^gpt-(5\.([4-9]|\d\d)|[6-9]|\d\d)(?!.*nano)/.test(model);
}

/** Whether an entry among the tools, or an item, is of the search of deferred tools. */
function isSearch({ type }: UnknownObject): boolean {
  return /^tool_search(_call|_output)?$/.test(String(type));
}

/** Returns the fields of a request. `builtIn` are the tools that the provider runs. */
export function requestFields(
  { instructions, messages, tools, options }: ModelRequest,
  model: string,
  builtIn: readonly UnknownObject[],
): UnknownObject {
  const own = tools.map((tool) => toolFields(tool, defers(model)));
  const isSearched = own.some((tool) => tool.defer_loading) && !builtIn.some(isSearch);
  const allTools = [...builtIn, ...(isSearched ? [{ type: "tool_search" }] : []), ...own];
  return {
    model,
    ...(instructions !== "" && { instructions }),
    input: inputOf(messages, model, allTools.some(isSearch)),
    ...(allTools.length > 0 && { tools: allTools }),
    ...(options.output?.type === "object" && { text: { format: formatOf(options.output) } }),
    stream: true,
    // the conversation is sent with every request, and so is the reasoning, which the provider encrypts
    store: false,
    ...(!/^(ft:)?(gpt-[34]|chatgpt)/.test(model) && { include: ["reasoning.encrypted_content"] }),
  };
}

function toolFields(tool: ToolDefinition, canDefer: boolean): UnknownObject {
  const { name, description, deferred } = tool;
  const more = canDefer && deferred ? { defer_loading: true } : {};
  return { type: "function", name, description, parameters: toolSchema(tool), strict: false, ...more };
}

function formatOf(schema: UnknownObject): UnknownObject {
  const exact = strictSchema(schema);
  return {
    type: "json_schema",
    name: "output",
    strict: exact !== undefined,
    schema: exact ?? toolSchema({ schema }),
  };
}

/** Converts the conversation. Searches of tools are left out if the request has no deferred tools. */
function inputOf(messages: readonly Message[], model: string, canSearch: boolean): readonly UnknownObject[] {
  const isSent = (part: AnswerPart) => canSearch || !isSearch(Object(readNote(part, model).item));
  /** The provider's ids of its questions, by the ids of the calls that they became. */
  const questions = new Map<string, string>();
  return messages.flatMap((message) => {
    switch (message.role) {
      case "user":
        return [{ role: "user", content: contentOf(message.parts) }];
      case "assistant":
        return assistantItems(message.parts.filter(isSent), model, questions);
      case "tool":
        return message.results.map((result) => {
          const question = questions.get(result.callId);
          return question === undefined ? resultItem(result) : approvalItem(question, result);
        });
    }
  });
}

/** Converts what the model wrote. The API rejects a reasoning item that nothing follows. */
function assistantItems(
  parts: readonly AnswerPart[],
  model: string,
  questions: Map<string, string>,
): readonly UnknownObject[] {
  const items: UnknownObject[] = [];
  let phase: unknown;
  const notes = parts.map((part) => readNote(part, model));
  for (const part of parts) {
    if (part.type === "call") {
      const { id, name } = part;
      const last = items.at(-1);
      if (last?.type === "mcp_approval_request") questions.set(id, String(last.id));
      else {
        const more = Object(notes.find(({ callId }) => callId === id)?.more);
        items.push({ type: "function_call", call_id: id, name, arguments: JSON.stringify(callInput(part)), ...more });
      }
    } else if (part.type === "provider_call") {
      items.push(builtInItem(readNote(part, model), providerResultOf(part, parts)) ?? noticeItem(part));
    } else if (part.type === "provider_result") {
      const call = parts.find((each) => each.type === "provider_call" && each.callId === part.callId);
      if (!call || !readNote(call, model).item) items.push(noticeItem(part));
    } else if (part.type === "text") {
      if (part.text !== "") {
        items.push({ role: "assistant", content: part.text, ...(phase !== undefined && { phase }) });
      }
      phase = undefined;
    } else if (part.type === "refusal") {
      const refused = { role: "assistant", content: [{ type: "refusal", refusal: part.text }] };
      if (part.text !== "" && items.at(-1)?.content === part.text) items.splice(-1, 1, refused);
    } else if (part.type === "media") {
      const { item } = readNote(part, model);
      items.push(
        isObject(item) ? { ...item, result: part.data } : { role: "assistant", content: generatedFileNotice(part) },
      );
    } else if (part.type === "reasoning") {
      const note = readNote(part, model);
      phase = note.phase;
      if (isObject(note.item)) items.push(note.item);
    }
  }
  const last = items.findLastIndex(({ type }) => type !== "reasoning");
  return items.slice(0, last + 1);
}

function noticeItem(part: ProviderCallPart | ProviderResultPart): UnknownObject {
  return { role: "assistant", content: providerNotice(part) };
}

function resultItem({ callId, parts }: CallResult): UnknownObject {
  const output = parts.some(({ type }) => type === "media") ? parts.map(partFields) : textOf({ parts });
  return { type: "function_call_output", call_id: callId, output };
}

/** Keeps a single text as a string. */
function contentOf(parts: readonly ContentPart[]): string | readonly UnknownObject[] {
  return parts.length > 1 || parts[0]?.type === "media" ? parts.map(partFields) : textOf({ parts });
}

function partFields(part: ContentPart): UnknownObject {
  if (part.type === "text") return { type: "input_text", text: part.text };
  const { mediaType, data, url } = part;
  const dataUrl = `data:${mediaType};base64,${data}`;
  if (mediaType.startsWith("image/")) return { type: "input_image", image_url: url ?? dataUrl, detail: "auto" };
  if (mediaType !== "application/pdf") return { type: "input_text", text: fileNotice(part) };
  return url === undefined
    ? { type: "input_file", filename: "file.pdf", file_data: dataUrl }
    : { type: "input_file", file_url: url };
}
