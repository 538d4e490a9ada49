/**
 * Requests of the Responses API.
 *
 * @module
 */
import { textOf, user } from "../../../protocol/message.ts";
import type { AnswerPart, Json } from "../../../protocol/part.ts";
import {
  array,
  boolean,
  id,
  invalid,
  json,
  jsonObject,
  lazy,
  object,
  oneOf,
  type Shape,
  string,
} from "../../../protocol/shape.ts";
import { toolName } from "../../client_tool.ts";
import { decodeCallId } from "../call_id.ts";
import { content, contentPart, declaredTools, nullish, refusalParts, unsupported } from "../content.ts";
import { answerFormat } from "../answer_format.ts";
import { callAnswer, callPart, type Conversation, type Entry } from "../conversation.ts";
import { itemParts } from "./item_parts.ts";

const functionTool = /* @__PURE__ */ lazy(() =>
  object({
    type: oneOf("function"),
    name: toolName,
    description: nullish(string),
    parameters: nullish(jsonObject),
  })
);

const request = /* @__PURE__ */ lazy(() =>
  object({
    input: json,
    instructions: nullish(string),
    previous_response_id: nullish(id),
    tools: nullish(array(functionTool)),
    stream: nullish(boolean),
    tool_choice: nullish(oneOf("auto", "none")),
    text: nullish(object({ format: answerFormat() })),
    parallel_tool_calls: unsupported(true),
    background: unsupported(false),
    prompt: unsupported(),
    conversation: unsupported(),
  })
);

/** Parses a request. */
export function responsesRequest(body: unknown): { readonly conversation: Conversation; readonly stream: boolean } {
  const { input, instructions, previous_response_id: previous, tools, tool_choice, text, stream = false } = request(
    body,
    "",
  );
  const session = previous && (decodeCallId(previous.slice("resp_".length))?.session ?? previous);
  const entries = typeof input === "string" ? [user(input)] : array(jsonObject)(input, "input").flatMap(entriesOf);
  const system = session === undefined && instructions !== undefined ? [user(instructions, "system")] : [];
  return {
    stream,
    conversation: {
      field: "input",
      entries: [...system, ...entries],
      session,
      mustExist: previous !== undefined,
      tools: declaredTools(tool_choice, tools),
      answerFormat: text?.format,
    },
  };
}

const answerPart: Shape<AnswerPart> = (value, path) => {
  const { refusal } = jsonObject(value, path);
  return typeof refusal === "string" ? { type: "refusal", text: refusal } : contentPart(value, path);
};

/** Returns the parts of an answer: its texts and files, and then its refusal. */
function answerParts(given: Json | undefined, path: string): readonly AnswerPart[] {
  const parts = typeof given === "string" ? user(given).parts : array(answerPart)(given, path);
  const refusal = parts.map((part) => part.type === "refusal" ? part.text : "").join("");
  return [...parts.filter(({ type }) => type !== "refusal"), ...refusalParts(refusal, textOf({ parts }))];
}

/** Returns the entry of an item. */
function entriesOf(item: Readonly<Record<string, Json>>, index: number): Entry[] {
  const path = `input.${index}`;
  const field = (name: string) => string(item[name], `${path}.${name}`);
  const idIn = (name: string) => id(item[name], `${path}.${name}`);
  const parts = (name: string) => content(item[name], `${path}.${name}`);
  switch (item.type === undefined ? "message" : field("type")) {
    case "item_reference": {
      const missing = invalid(path, "the item in place of an item_reference, as clients send it with `store: false`");
      return [{ role: "assistant", parts: [], missing }];
    }
    case "message": {
      const role = field("role");
      if (role === "assistant") return [{ role, parts: answerParts(item.content, `${path}.content`) }];
      return [{ role: "user", parts: parts("content"), ...(role !== "user" && { from: role }) }];
    }
    case "function_call":
      return [{ role: "assistant", parts: [callPart(idIn("call_id"), field("name"), field("arguments"))] }];
    case "function_call_output":
      return [callAnswer(idIn("call_id"), { type: "reply", text: textOf({ parts: parts("output") }) })];
    case "mcp_approval_response": {
      const approve = boolean(item.approve, `${path}.approve`);
      const reason = typeof item.reason === "string" ? { reason: item.reason } : {};
      return [callAnswer(idIn("approval_request_id"), approve ? { type: "approve" } : { type: "deny", ...reason })];
    }
    default: {
      if (typeof item.id === "string") idIn("id");
      const parts = itemParts(item);
      return parts.length > 0 ? [{ role: "assistant", parts }] : [];
    }
  }
}
