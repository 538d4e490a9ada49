/**
 * OpenAI's chat completions API.
 *
 * @module
 */
import { expectNames } from "../../../protocol/shape.ts";
import type { ParsedRequest, Reply, Wire, WireRequest } from "../../wire.ts";
import { completionCollector } from "./collector.ts";
import { completionEncoder } from "./encoder.ts";
import { chatRequest } from "./request.ts";
import { jsonHeaders as headers, modelRoutes, type OpenaiOptions } from "../models.ts";
import { encodeError } from "../run_error.ts";
import { appendJson, collectJson } from "../../json_answer.ts";
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
