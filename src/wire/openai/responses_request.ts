/**
 * Requests of the Responses API.
 *
 * @module
 */
import { type Json, textOf, user } from "../../protocol/message.ts";
import { toolName } from "../client_tool.ts";
import { flag, json, list, object, record, text, word } from "../shape.ts";
import { placeOf } from "./call_id.ts";
import { choice, content, declaredOf, format, maybe, only } from "./content.ts";
import { callOf, type Conversation, type Entry, outcome } from "./said.ts";

// made where they are needed: who bundles one of the two APIs has nothing of the other
const declared = () =>
  record({
    type: word("function"),
    name: toolName,
    description: maybe(text),
    parameters: maybe(object),
  });

const request = () =>
  record({
    input: json,
    instructions: maybe(text),
    previous_response_id: maybe(text),
    tools: maybe(list(declared())),
    stream: maybe(flag),
    tool_choice: choice,
    text: maybe(record({ format })),
    parallel_tool_calls: only(true),
    background: only(false),
    prompt: only(),
    conversation: only(),
  });

/** Reads a request. */
export function responsesRequest(body: unknown): { readonly conversation: Conversation; readonly stream: boolean } {
  const read = request()(body, "");
  const { input, instructions, previous_response_id: previous, tools, tool_choice, stream = false } = read;
  const session = previous && (placeOf(previous.slice(5))?.session ?? previous);
  const said = typeof input === "string" ? [user(input)] : list(object)(input, "input").flatMap(entriesOf);
  const system = session === undefined && instructions !== undefined ? [user(instructions, "system")] : [];
  return {
    stream,
    conversation: {
      field: "input",
      entries: [...system, ...said],
      session,
      known: previous !== undefined,
      tools: declaredOf(tool_choice, tools),
    },
  };
}

/** What an item says; nothing where it says what the server knows, such as what it has asked. */
function entriesOf(item: Readonly<Record<string, Json>>, index: number): Entry[] {
  const at = `input.${index}`;
  const said = (name: string) => text(item[name], `${at}.${name}`);
  const parts = (name: string) => content(item[name], `${at}.${name}`);
  switch (item.type ?? "message") {
    case "message":
    case "item_reference": { // refused, as it does not say whose it is
      const role = said("role");
      if (role === "assistant") return [{ role, parts: parts("content").filter((part) => part.type === "text") }];
      return [{ role: "user", parts: parts("content"), ...(role !== "user" && { from: role }) }];
    }
    case "function_call":
      return [{ role: "assistant", parts: [callOf(said("call_id"), said("name"), said("arguments"))] }];
    case "function_call_output":
      return [outcome(said("call_id"), { type: "reply", text: textOf({ parts: parts("output") }) })];
    case "mcp_approval_response": {
      const approve = flag(item.approve, `${at}.approve`);
      const why = typeof item.reason === "string" ? { reason: item.reason } : {};
      return [outcome(said("approval_request_id"), approve ? { type: "approve" } : { type: "deny", ...why })];
    }
    default:
      return [];
  }
}
