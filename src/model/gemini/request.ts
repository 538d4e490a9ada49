/**
 * Converts requests to the body of `generateContent`.
 *
 * @module
 */
import { type CallResult, type Message, textOf } from "../../protocol/message.ts";
import type { AnswerPart, ContentPart } from "../../protocol/part.ts";
import { isObject, type UnknownObject } from "../../protocol/shape.ts";
import type { ModelRequest, ToolDefinition } from "../model.ts";
import { readNote } from "../provider_note.ts";
import { builtInParts } from "./built_in_tools.ts";
import { callInput, openingNotice, toolSchema } from "../request_parts.ts";

/** Returns the fields of a request. `builtIn` are the tools that the provider runs. */
export function requestFields(
  { instructions, messages, tools }: ModelRequest,
  model: string,
  builtIn: readonly UnknownObject[],
): UnknownObject {
  const declared = tools.length > 0 ? [{ functionDeclarations: tools.map(declarationOf) }] : [];
  const allTools = [...declared, ...builtIn];
  const contents = messages.flatMap((message) => contentsOf(message, model));
  const opening = contents[0]?.role === "model" ? openingNotice(messages) : undefined;
  return {
    ...(instructions !== "" && { systemInstruction: { parts: [{ text: instructions }] } }),
    contents: opening === undefined ? contents : [{ role: "user", parts: [{ text: opening }] }, ...contents],
    ...(allTools.length > 0 && { tools: allTools }),
  };
}

function declarationOf(tool: ToolDefinition): UnknownObject {
  const { name, description } = tool;
  return { name, description, parametersJsonSchema: toolSchema(tool) };
}

/** The content of one role. */
interface Content {
  readonly role: string;
  readonly parts: readonly UnknownObject[];
}

/** Converts a message. A content without parts is left out, because the API rejects it. */
function contentsOf(message: Message, model: string): readonly Content[] {
  const contents = message.role === "user"
    ? [{ role: "user", parts: message.parts.flatMap(partFields) }]
    : message.role === "assistant"
    ? [{ role: "model", parts: assistantParts(message.parts, model) }]
    : [{ role: "user", parts: message.results.map(resultPart) }, { role: "user", parts: filesOf(message.results) }];
  return contents.filter(({ parts }) => parts.length > 0);
}

function partFields(part: ContentPart): readonly UnknownObject[] {
  if (part.type === "text") return part.text === "" ? [] : [{ text: part.text }];
  const { mediaType: mimeType, data, url } = part;
  return [url === undefined ? { inlineData: { mimeType, data } } : { fileData: { mimeType, fileUri: url } }];
}

/** Converts what the model wrote, with the signatures and parts that came from the same model. */
function assistantParts(parts: readonly AnswerPart[], model: string): readonly UnknownObject[] {
  let signature: unknown;
  return parts.flatMap((part): readonly UnknownObject[] => {
    if (part.type === "call") {
      const signed = signature === undefined ? {} : { thoughtSignature: signature };
      signature = undefined;
      return [{ functionCall: { id: part.id, name: part.name, args: callInput(part) }, ...signed }];
    }
    if (part.type === "text") return partFields(part);
    if (part.type === "media") {
      const { signature } = readNote(part, model);
      return partFields(part).map((fields) => signature ? { ...fields, thoughtSignature: signature } : fields);
    }
    if (part.type === "source" || part.type === "refusal" || part.type === "logprobs") return [];
    if (part.type === "provider_call" || part.type === "provider_result") return builtInParts(part, model);
    const note = readNote(part, model);
    signature = note.callSignature ?? signature; // notes may stand between it and a call that was cut
    if (note.textSignature) return [{ text: "", thoughtSignature: note.textSignature }];
    if (note.thoughtSignature) return [{ text: part.text, thought: true, thoughtSignature: note.thoughtSignature }];
    return isObject(note.part) ? [note.part] : [];
  });
}

function resultPart(result: CallResult): UnknownObject {
  const { callId, name, status } = result;
  const response = { [status === "ok" ? "output" : "error"]: textOf(result) };
  return { functionResponse: { id: callId, name, response } };
}

/** Moves the files among results to a content after them: not every model accepts files within a result. */
function filesOf(results: readonly CallResult[]): readonly UnknownObject[] {
  return results.flatMap(({ callId, name, parts }) => {
    const files = parts.filter(({ type }) => type === "media");
    return files.length > 0 ? [{ text: `From ${name}, call ${callId}:` }, ...files.flatMap(partFields)] : [];
  });
}
