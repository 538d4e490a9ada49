/**
 * Items of the tools that OpenAI runs: calls with their results, images, and questions before the calls of remote MCP servers.
 *
 * @module
 */
import { type CallResult, textOf } from "../../protocol/message.ts";
import type { Call, Json, MediaPart, ProviderCallPart, ProviderResultPart } from "../../protocol/part.ts";
import { isObject, jsonOrText, type UnknownObject } from "../../protocol/shape.ts";
import { callEvent, type PartEvent, resultEvent } from "../provider_note.ts";
import { approved } from "../provider_tools.ts";
import { stringIn } from "../response.ts";

/** The fields of the items: the input of the call, and the output. */
const fields: Readonly<Record<string, readonly [name: string, input: string, output: string]>> = {
  web_search_call: ["web_search", "action", ""],
  file_search_call: ["file_search", "queries", "results"],
  code_interpreter_call: ["code_execution", "code", "outputs"],
};

/** Returns the call and the result of an item, or its image; undefined for an item of another kind. `note` contains the model that made it. */
export function builtInEvents(
  note: UnknownObject,
  item: UnknownObject,
): readonly PartEvent<ProviderCallPart | ProviderResultPart | MediaPart>[] | undefined {
  const type = stringIn(item, "type");
  if (type === "image_generation_call" && item.result) return [{ type: "part", part: imagePart(note, item) }];
  const { id, name, server_label: server, status } = item;
  if (type === "mcp_call") {
    const failed = (item.error ?? null) !== null;
    const { [failed ? "error" : "output"]: output, ...rest } = item;
    return [
      callEvent({ callId: id, name, server, input: jsonOrText(item.arguments) }, { ...note, item: rest }),
      resultEvent({ callId: id, name, status: failed ? "error" : "ok", output: failed ? { error: output } : output }),
    ];
  }
  const [tool = "", input = "", output = ""] = fieldsOf(type);
  if (tool === "") return undefined;
  const { [output]: value, ...rest } = item;
  const { sources = null }: UnknownObject = isObject(item.action) ? item.action : {};
  const fields = isObject(item[input]) ? item[input] : { [input]: item[input] };
  return [
    callEvent({ callId: id, name: tool, input: fields }, { ...note, item: rest }),
    resultEvent({
      callId: id,
      name: tool,
      status: (status ?? "completed") === "completed" ? "ok" : "error",
      output: output === "" ? sources : value,
    }),
  ];
}

/** Returns a generated image. The rest of its item is kept, because the API wants the whole item back. */
function imagePart(note: UnknownObject, { result, ...item }: UnknownObject): MediaPart {
  const mediaType = `image/${stringIn(item, "output_format") || "png"}`;
  return { type: "media", mediaType, data: stringIn({ result }, "result"), meta: { ...note, item } as Json }; // parsed JSON
}

/** Returns the name of a tool and the fields of its item; nothing for another item. */
function fieldsOf(type: string): readonly string[] {
  return Object.hasOwn(fields, type) ? fields[type] ?? [] : [];
}

/** Returns the call that a question asks about: one of the server, which the engine decides about. */
export function questionCall({ id, name, server_label, arguments: input }: UnknownObject): Call {
  const asked = { tool: name, arguments: jsonOrText(input) };
  return { id: stringIn({ id }, "id"), name: stringIn({ server_label }, "server_label"), input: asked };
}

/** Returns the item in the note of a call, with the output of its result; undefined if there is none. */
export function builtInItem(
  { item }: UnknownObject,
  { output }: { readonly output: unknown } = { output: null },
): UnknownObject | undefined {
  if (!isObject(item)) return undefined;
  if (item.type === "mcp_call") return { ...item, ...(isObject(output) && "error" in output ? output : { output }) };
  const [, , name = ""] = fieldsOf(`${item.type}`);
  return name === "" ? item : { ...item, [name]: output };
}

/** Returns the answer to a question. The provider may run the call only if the engine has allowed it as the model wrote it. */
export function approvalItem(id: string, result: CallResult): UnknownObject {
  const text = textOf(result);
  const approve = result.status === "ok" && text === approved;
  return { type: "mcp_approval_response", approval_request_id: id, approve, ...(!approve && { reason: text }) };
}
