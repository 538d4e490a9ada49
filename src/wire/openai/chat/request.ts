/**
 * Requests of the chat completions API.
 *
 * @module
 */
import { textOf } from "../../../protocol/message.ts";
import { array, boolean, id, jsonObject, lazy, object, oneOf, string } from "../../../protocol/shape.ts";
import { toolName } from "../../client_tool.ts";
import { content, declaredTools, nullish, refusalParts, unsupported } from "../content.ts";
import { answerFormat } from "../answer_format.ts";
import { callAnswer, callPart, type Conversation, type Entry } from "../conversation.ts";
import { executedParts, executedTool } from "./executed_tools.ts";

const message = /* @__PURE__ */ lazy(() =>
  object({
    role: oneOf("system", "developer", "user", "assistant", "tool"),
    content: nullish(content),
    refusal: nullish(string),
    tool_calls: nullish(array(object({ id, function: object({ name: string, arguments: string }) }))),
    tool_call_id: nullish(id),
    images: nullish(content),
    executed_tools: nullish(array(executedTool)),
  })
);

const functionTool = /* @__PURE__ */ lazy(() =>
  object({
    type: oneOf("function"),
    function: object({ name: toolName, description: nullish(string), parameters: nullish(jsonObject) }),
  })
);

const request = /* @__PURE__ */ lazy(() =>
  object({
    messages: array(message),
    tools: nullish(array(functionTool)),
    stream: nullish(boolean),
    stream_options: nullish(object({ include_usage: nullish(boolean) })),
    tool_choice: nullish(oneOf("auto", "none")),
    response_format: answerFormat("json_schema"),
    modalities: nullish(array(oneOf("text"))),
    n: unsupported(1),
    logprobs: unsupported(false),
    top_logprobs: unsupported(0),
    parallel_tool_calls: unsupported(true),
    stop: unsupported(),
    logit_bias: unsupported(),
    audio: unsupported(),
    functions: unsupported(),
    function_call: unsupported(),
    web_search_options: unsupported(),
    previous_response_id: unsupported(),
    conversation: unsupported(),
  })
);

/** A parsed request. */
export interface ChatRequest {
  readonly conversation: Omit<Conversation, "session">;
  readonly stream: boolean;
  /** Whether a stream ends with the token usage. */
  readonly includeUsage: boolean;
}

/** Parses a request. */
export function chatRequest(body: unknown): ChatRequest {
  const { messages, tools, tool_choice, response_format, stream = false, stream_options } = request(body, "");
  return {
    conversation: {
      field: "messages",
      entries: messages.map(entryOf),
      tools: declaredTools(tool_choice, tools?.map((tool) => tool.function)),
      answerFormat: response_format,
    },
    stream,
    includeUsage: stream_options?.include_usage ?? false,
  };
}

function entryOf(
  { role, content: parts = [], refusal = "", tool_calls = [], tool_call_id = "", images = [], executed_tools = [] }:
    ReturnType<typeof message>,
): Entry {
  switch (role) {
    case "user":
      return { role, parts };
    case "assistant": {
      const calls = tool_calls.map(({ id, function: { name, arguments: input } }) => callPart(id, name, input));
      return {
        role,
        parts: [
          ...executedParts(executed_tools),
          ...parts.filter((part) => part.type === "text"),
          ...refusalParts(refusal, textOf({ parts })),
          ...images.filter((part) => part.type === "media"),
          ...calls,
        ],
      };
    }
    case "tool":
      return callAnswer(tool_call_id, { type: "reply", text: textOf({ parts }) });
    default:
      return { role: "user", from: role, parts };
  }
}
