/**
 * Calls and results of the tools that Gemini runs.
 *
 * @module
 */
import type { ProviderCallPart, ProviderResultPart } from "../../protocol/part.ts";
import { isObject, type UnknownObject } from "../../protocol/shape.ts";
import type { ModelEvent } from "../model.ts";
import { callEvent, readNote, resultEvent } from "../provider_note.ts";
import { stringIn } from "../response_members.ts";
import { providerNotice } from "../provider_tools.ts";

/** Parses the parts of tools that the provider runs. */
export interface BuiltInParser {
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
export function builtInParts(part: ProviderCallPart | ProviderResultPart, model: string): readonly UnknownObject[] {
  const { part: own, reported } = readNote(part, model);
  if (!isObject(own)) return reported ? [] : [{ text: providerNotice(part) }];
  if (part.type === "provider_call") return [own];
  const { codeExecutionResult: ran, toolResponse: answer } = own;
  return [
    isObject(ran)
      ? { ...own, codeExecutionResult: { ...ran, output: part.output } }
      : { ...own, toolResponse: { ...Object(answer), response: part.output } },
  ];
}
