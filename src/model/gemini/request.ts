/**
 * Converts requests to the body of `generateContent`.
 *
 * @module
 */
import type { ModelEvent, ModelRequest, ToolDefinition } from "../model.ts";
import { callEvent, readNote, resultEvent } from "../provider_note.ts";
import { providerNotice } from "../provider_tools.ts";
import { callInput, openingNotice, toolSchema } from "../request.ts";
import { stringIn } from "../response.ts";
import { type CallResult, type Message, textOf } from "../../protocol/message.ts";
import type { AnswerPart, ContentPart, ProviderCallPart, ProviderResultPart } from "../../protocol/part.ts";
import { isObject, type UnknownObject } from "../../protocol/shape.ts";

// Calls and results of the tools that Gemini runs.

/** Parses the parts of tools that the provider runs. */
interface BuiltInParser {
  /** Sets the id of the response, from which ids of calls are made that the provider gives none. */
  readonly name: (responseId: unknown) => void;
  /** Returns the event of a part; undefined for a part of another kind. */
  readonly parse: (part: UnknownObject) => ModelEvent | undefined;
  /** Returns the events of a search, or of pages that were read, which only the metadata of the answer report. */
  readonly report: (candidate: UnknownObject) => readonly ModelEvent[];
}

/** Creates a parser for one response of `model`. */
export function builtInParser(model: string): BuiltInParser {
  let response = "call";
  let calls = 0;
  const newId = () => `${response}_${calls++}`;
  let last = "";

  function parse(part: UnknownObject): ModelEvent | undefined {
    const { executableCode: code, codeExecutionResult: ran, toolCall, toolResponse } = part;
    const call = code ?? toolCall;
    if (isObject(call)) {
      const callId = last = stringIn(call, "id") || newId();
      return callEvent({ callId, name: nameOf(call), input: code ?? call.args }, { model, part });
    }
    const answer = ran ?? toolResponse;
    if (!isObject(answer)) return undefined;
    const { output, response: found, ...rest } = answer;
    const status = ran && answer.outcome !== "OUTCOME_OK" ? "error" : "ok";
    const of = { callId: stringIn(answer, "id") || last, name: nameOf(answer) };
    return resultEvent({ ...of, status, output: found ?? output }, {
      model,
      part: { ...part, [ran ? "codeExecutionResult" : "toolResponse"]: rest },
    });
  }

  function report({ groundingMetadata, urlContextMetadata }: UnknownObject): readonly ModelEvent[] {
    if (last !== "") return []; // its parts have reported it
    const { webSearchQueries: queries, groundingChunks }: UnknownObject = Object(groundingMetadata);
    const { urlMetadata }: UnknownObject = Object(urlContextMetadata);
    return [
      ...(Object(queries).length > 0 ? pairOf("web_search", { queries }, groundingChunks) : []),
      ...(urlMetadata ? pairOf("url_context", {}, urlMetadata) : []), // the pages are in the output alone
    ];
  }

  function pairOf(name: string, input: UnknownObject, output: unknown): readonly ModelEvent[] {
    const callId = newId();
    const note = { model, reported: true }; // the provider takes no such part back
    return [callEvent({ callId, name, input }, note), resultEvent({ callId, name, status: "ok", output }, note)];
  }

  return {
    name: (id) => response = stringIn({ responseId: id }, "responseId") || response,
    parse,
    report,
  };
}

/** Returns the neutral name of a tool. Only the parts of code execution have no type. */
function nameOf({ toolType = "code_execution" }: UnknownObject): string {
  return toolType === "GOOGLE_SEARCH_WEB" ? "web_search" : stringIn({ toolType }, "toolType").toLowerCase();
}

/** Returns the parts that a request contains for a call or a result: the provider's own, or a text. */
function builtInParts(part: ProviderCallPart | ProviderResultPart, model: string): readonly UnknownObject[] {
  const { part: notedPart, reported } = readNote(part, model);
  if (!isObject(notedPart)) return reported ? [] : [{ text: providerNotice(part) }];
  if (part.type === "provider_call") return [notedPart];
  const { codeExecutionResult: ran, toolResponse: answer } = notedPart;
  return [
    isObject(ran)
      ? { ...notedPart, codeExecutionResult: { ...ran, output: part.output } }
      : { ...notedPart, toolResponse: { ...Object(answer), response: part.output } },
  ];
}

// The body of a request: the transcript, the tools and the options in the form of Gemini.

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
