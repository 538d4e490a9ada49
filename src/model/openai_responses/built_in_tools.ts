/**
 * Items of the tools that OpenAI runs: calls with their results, and questions before the calls of remote MCP servers.
 *
 * @module
 */
import { type CallResult, textOf } from "../../protocol/message.ts";
import type { Json } from "../../protocol/part.ts";
import { isObject, jsonOrText, stringOrEmpty, type UnknownObject } from "../../protocol/unknown_json.ts";
import type { ModelEvent } from "../model.ts";
import { callEvent, resultEvent } from "../provider_note.ts";
import { approved } from "../provider_tools.ts";

/** The fields of the items: the input of the call, and the output. */
const fields: Readonly<Record<string, readonly [name: string, input: string, output: string]>> = {
  web_search_call: ["web_search", "action", ""],
  file_search_call: ["file_search", "queries", "results"],
  code_interpreter_call: ["code_execution", "code", "outputs"],
};

/** Returns the events of an item; undefined for an item of another kind. `note` contains the model that made it. */
export function builtInEvents(note: UnknownObject, item: UnknownObject): readonly ModelEvent[] | undefined {
  const type = stringOrEmpty(item.type);
  const { id, name, server_label: server, status } = item;
  if (type === "mcp_approval_request") return questionEvents(note, item);
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
  const given = isObject(item[input]) ? item[input] : { [input]: item[input] };
  return [
    callEvent({ callId: id, name: tool, input: given }, { ...note, item: rest }),
    resultEvent({
      callId: id,
      name: tool,
      status: status === "failed" || status === "incomplete" ? "error" : "ok",
      output: output === "" ? sources : value,
    }),
  ];
}

/** Returns the name of a tool and the fields of its item; nothing for another item. */
function fieldsOf(type: string): readonly string[] {
  return Object.hasOwn(fields, type) ? fields[type] ?? [] : [];
}

/** Returns the events of a question: a call of the server, which the engine decides about. The note that precedes it keeps the question. */
function questionEvents(note: UnknownObject, item: UnknownObject): readonly ModelEvent[] {
  const id = stringOrEmpty(item.id);
  return [
    { type: "reasoning", text: "", meta: { ...note, item } as Json }, // parsed JSON
    { type: "call.start", id, name: stringOrEmpty(item.server_label) },
    { type: "call.end", id, input: { tool: item.name, arguments: jsonOrText(item.arguments) } },
  ];
}

/** Returns the item in the note of a call, with the output of its result; undefined if there is none. */
export function builtInItem(
  { item }: UnknownObject,
  { output }: { readonly output: unknown } = { output: null },
): UnknownObject | undefined {
  if (!isObject(item)) return undefined;
  if (item.type === "mcp_call") return { ...item, ...(isObject(output) && "error" in output ? output : { output }) };
  const [, , name = ""] = fieldsOf(stringOrEmpty(item.type));
  return name === "" ? item : { ...item, [name]: output };
}

/** Returns the answer to a question. The provider may run the call only if the engine has allowed it as the model wrote it. */
export function approvalItem(id: string, result: CallResult): UnknownObject {
  const text = textOf(result);
  const approve = result.status === "ok" && text === approved;
  return { type: "mcp_approval_response", approval_request_id: id, approve, ...(!approve && { reason: text }) };
}
