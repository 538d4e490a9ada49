/**
 * OpenAI's chat completions API: its wire, and its requests. `completion.ts` has the responses.
 *
 * @module
 */
import { textOf } from "../../protocol/message.ts";
import type { AnswerPart, Json } from "../../protocol/part.ts";
import {
  array,
  boolean,
  expectNames,
  id,
  jsonObject,
  jsonOrText,
  lazy,
  object,
  oneOf,
  string,
} from "../../protocol/shape.ts";
import { toolName } from "../client_tool.ts";
import { appendJson, collectJson } from "../json_answer.ts";
import { completionCollector, completionEncoder, textInputOf } from "./completion.ts";
import {
  answerFormat,
  callAnswer,
  callPart,
  content,
  type Conversation,
  declaredTools,
  type Entry,
  nullish,
  refusalParts,
  unsupported,
} from "./conversation.ts";
import { jsonHeaders as headers, modelRoutes, type OpenaiOptions } from "./models.ts";
import { encodeError } from "./run_error.ts";
import type { ParsedRequest, Reply, Wire, WireRequest } from "../wire.ts";

// Calls that a provider ran, as compatible clients send them back in a history.

/** Parses one of the `executed_tools` of a message. */
const executedTool = /* @__PURE__ */ lazy(() =>
  object({ id: nullish(id), type: string, arguments: nullish(string), output: nullish(string) })
);

/** Returns the parts of executed tools: their calls and results, as far as the client has them. */
function executedParts(tools: readonly ReturnType<typeof executedTool>[]): readonly AnswerPart[] {
  return tools.flatMap(({ id, type: name, arguments: input, output }, index): readonly AnswerPart[] => {
    const at = { callId: id ?? `executed_${index}`, name };
    const call = { type: "provider_call", ...at, input: jsonOf(input) } as const;
    const result = { type: "provider_result", ...at, status: "ok", output: jsonOf(output) } as const;
    return [...input === undefined ? [] : [call], ...output === undefined ? [] : [result]];
  });
}

function jsonOf(text: string | undefined): Json {
  return jsonOrText(text) as Json; // parsed JSON
}

// Requests of the chat completions API.

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
interface ChatRequest {
  readonly conversation: Omit<Conversation, "session">;
  readonly stream: boolean;
  /** Whether a stream ends with the token usage. */
  readonly includeUsage: boolean;
}

/** Parses a request. */
function chatRequest(body: unknown): ChatRequest {
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

// The wire: the route of chat completions, from its request to its response.

/**
 * Serves clients of OpenAI's chat completions API, and compatible clients. The client holds the conversation. The agent answers, whatever model the request
 * names.
 *
 * - `POST /v1/chat/completions`, streamed or not.
 * - `GET /v1/models` and `GET /v1/models/:id` return the agent.
 *
 * The agent's own tools run on the server, and the client does not see them. The client runs the tools that its request declares: such a call is returned as
 * a tool call, whose id contains the session, and the run continues when a request brings the result. A question to a person is
 * returned as text, with the input of the call. The reply "yes" approves the call, "no" denies it, and every other reply continues the conversation without it.
 * On a server with `resumeTokens` no call can be answered, because these requests have no place for the token.
 *
 * The usage of a response that resumes a run counts only the tokens since then.
 *
 * A stream cannot take text back. If the model begins its answer again, or a hook replaces it, the text contains a notice, "[The answer above was discarded.]",
 * and the new answer. The chunk of the notice has a member `discarded` with the texts to remove from the end of `content` and `reasoning_content`. A client that
 * removes them and leaves out the notice has the text of the response that is not streamed. Sources, files, calls of the provider, refusals and log
 * probabilities are sent once, before the end of the stream.
 *
 * With a `response_format` for JSON, only the JSON answer is sent. The agent's own `output` schema comes first; without one, the request's schema goes to the
 * model, and an answer that is not JSON is asked for again. If the model begins a streamed JSON answer again, the members of the second follow those of the first,
 * and parsers of JSON take the last member of a name; the stream fails only if the first has a member that the second has not. Other hints to the model, such as `temperature`, are ignored, because the agent has its own.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { chatCompletions } from "@jizai/jizai/wire/openai";
 * import { assertEquals } from "@std/assert";
 *
 * const app = serve(agent({ model: scripted("Hello!") }), { wires: [chatCompletions()] });
 *
 * const response = await app.request("/v1/chat/completions", {
 *   method: "POST",
 *   headers: { "content-type": "application/json" },
 *   body: JSON.stringify({ model: "agent", messages: [{ role: "user", content: "Hi" }] }),
 * });
 * const { choices } = await response.json();
 * assertEquals(choices[0].message.content, "Hello!");
 * ```
 */
export function chatCompletions(options: OpenaiOptions = {}): Wire {
  expectNames("Cannot create chatCompletions()", options, ["path"]);
  const { path = "/v1" } = options;
  return {
    routes: (agent) => [
      { method: "POST", path: `${path}/chat/completions`, parse: (request) => parse(agent, request), encodeError },
      ...modelRoutes(agent, path),
    ],
  };
}

function parse(agent: string, { body, session }: WireRequest): ParsedRequest {
  const { conversation, stream, includeUsage } = chatRequest(body);
  const isJson = conversation.answerFormat !== undefined;
  const encoder = () => completionEncoder(agent, { includeUsage, isJson });
  const collector = () => completionCollector(agent);
  const reply: Reply = stream
    ? { type: "stream", encoder: isJson ? () => appendJson(encoder()) : encoder }
    : { type: "json", headers, collector: isJson ? () => collectJson(collector()) : collector };
  return { type: "chat", ...textInputOf({ ...conversation, session }), reply };
}
