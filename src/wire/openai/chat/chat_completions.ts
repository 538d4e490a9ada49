/**
 * OpenAI's chat completions API.
 *
 * @module
 */
import { expectNames } from "../../../protocol/option_names.ts";
import type { ParsedRequest, Reply, Wire, WireRequest } from "../../wire.ts";
import { completionCollector } from "./collector.ts";
import { completionEncoder } from "./encoder.ts";
import { chatRequest } from "./request.ts";
import { jsonHeaders as headers, modelRoutes, type OpenaiOptions } from "../models.ts";
import { encodeError } from "../run_error.ts";
import { jsonAnswer } from "../../json_answer.ts";
import { textInputOf } from "./text_question.ts";

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
 * With a `response_format` for JSON, only the JSON answer is sent. The agent's own `output` schema comes first; without one, the request's schema goes to the
 * model, and an answer that is not JSON is asked for again. Other hints to the model, such as `temperature`, are ignored, because the agent has its own.
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
  const encoder = () => completionEncoder(agent, includeUsage);
  const collector = () => completionCollector(agent);
  const isJson = conversation.answerFormat !== undefined;
  const reply: Reply = stream
    ? { type: "stream", encoder: isJson ? () => jsonAnswer(encoder(), true, "") : encoder }
    : { type: "json", headers, collector: isJson ? () => jsonAnswer(collector(), false, undefined) : collector };
  return { type: "chat", ...textInputOf({ ...conversation, session }), reply };
}
