/**
 * Requests of chat completions.
 *
 * @module
 */
import { textOf } from "../../protocol/message.ts";
import { toolName } from "../client_tool.ts";
import { flag, list, object, record, text, word } from "../shape.ts";
import { choice, content, declaredOf, format, maybe, only } from "./content.ts";
import { callOf, type Conversation, type Entry, outcome } from "./said.ts";

// made where they are needed: who bundles one of the two APIs has nothing of the other
const call = () => record({ id: text, function: record({ name: text, arguments: text }) });

const message = () =>
  record({
    role: word("system", "developer", "user", "assistant", "tool"),
    content: maybe(content),
    tool_calls: maybe(list(call())),
    tool_call_id: maybe(text),
  });

const declared = () =>
  record({
    type: word("function"),
    function: record({ name: toolName, description: maybe(text), parameters: maybe(object) }),
  });

const request = () =>
  record({
    messages: list(message()),
    tools: maybe(list(declared())),
    stream: maybe(flag),
    stream_options: maybe(record({ include_usage: maybe(flag) })),
    tool_choice: choice,
    response_format: format,
    modalities: maybe(list(word("text"))),
    n: only(1),
    logprobs: only(false),
    top_logprobs: only(0),
    parallel_tool_calls: only(true),
    stop: only(),
    logit_bias: only(),
    audio: only(),
    functions: only(),
    function_call: only(),
    web_search_options: only(),
    previous_response_id: only(),
    conversation: only(),
  });

/** A request as it was read. */
export interface ChatRequest {
  readonly conversation: Omit<Conversation, "session">;
  readonly stream: boolean;
  /** Whether a stream ends with what it took. */
  readonly usage: boolean;
}

/** Reads a request. */
export function chatRequest(body: unknown): ChatRequest {
  const { messages, tools, tool_choice, stream = false, stream_options } = request()(body, "");
  return {
    conversation: {
      field: "messages",
      entries: messages.map(entryOf),
      tools: declaredOf(tool_choice, tools?.map((tool) => tool.function)),
    },
    stream,
    usage: stream_options?.include_usage ?? false,
  };
}

function entryOf(
  { role, content: parts = [], tool_calls = [], tool_call_id = "" }: ReturnType<ReturnType<typeof message>>,
): Entry {
  switch (role) {
    case "user":
      return { role, parts };
    case "assistant": {
      const calls = tool_calls.map(({ id, function: { name, arguments: input } }) => callOf(id, name, input));
      return { role, parts: [...parts.filter((part) => part.type === "text"), ...calls] };
    }
    case "tool":
      return outcome(tool_call_id, { type: "reply", text: textOf({ parts }) });
    default:
      return { role: "user", from: role, parts };
  }
}
