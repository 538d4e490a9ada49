/**
 * OpenAI's Responses API.
 *
 * @module
 */
import { expectNames } from "../../../protocol/shape.ts";
import type { JsonResponse, ParsedRequest, Reply, ResponseCollector, Wire, WireRequest } from "../../wire.ts";
import { chatInputOf } from "../conversation.ts";
import { jsonHeaders as headers, type OpenaiOptions } from "../models.ts";
import { collectJson, replaceJson } from "../../json_answer.ts";
import { responseEncoder } from "./encoder.ts";
import { responsesRequest } from "./request.ts";
import { encodeError } from "../run_error.ts";

/**
 * Serves clients of OpenAI's Responses API. The agent answers, whatever model the request names.
 *
 * - `POST /v1/responses`, streamed or not. With a `previous_response_id` the session of that response continues from its present state; without one the
 *   client holds the conversation.
 *
 * The server keeps no items. A client that holds the conversation sends them with `store: false`, as the AI SDK does with the provider option of this name; an
 * `item_reference` is accepted only in a request that continues a session, by a `previous_response_id`, the URL or the results of calls.
 *
 * The agent's own tools run on the server, and the client does not see them. The client runs the tools that its request declares: such a call is returned as
 * a function call, whose id contains the session, and the run continues when a request brings the result. A question about a call is returned as an approval
 * request, in the format of a call to an MCP server. On a server with `resumeTokens` no call can be answered, because these requests have no place for the
 * token.
 *
 * The usage of a response that resumes a run counts only the tokens since then.
 *
 * With a `text.format` for JSON, only the JSON answer is sent. The agent's own `output` schema comes first; without one, the request's schema goes to the
 * model, and an answer that is not JSON is asked for again. Other hints to the model, such as `temperature`, are ignored, because the agent has its own.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { responses } from "@jizai/jizai/wire/openai";
 * import { assertEquals } from "@std/assert";
 *
 * const app = serve(agent({ model: scripted("Hello!") }), { wires: [responses()] });
 *
 * const response = await app.request("/v1/responses", {
 *   method: "POST",
 *   headers: { "content-type": "application/json" },
 *   body: JSON.stringify({ model: "agent", input: "Hi" }),
 * });
 * const { output } = await response.json();
 * assertEquals(output[0].content[0].text, "Hello!");
 * ```
 */
export function responses(options: OpenaiOptions = {}): Wire {
  expectNames("Cannot create responses()", options, ["path"]);
  const { path = "/v1" } = options;
  return {
    routes: (agent) => [
      { method: "POST", path: `${path}/responses`, parse: (request) => parse(agent, request), encodeError },
    ],
  };
}

function parse(agent: string, { body, session }: WireRequest): ParsedRequest {
  const { conversation, stream } = responsesRequest(body);
  const encoder = () => responseEncoder(agent);
  const collector = () => responseCollector(agent);
  const isJson = conversation.answerFormat !== undefined;
  const reply: Reply = stream
    ? { type: "stream", encoder: isJson ? () => replaceJson(encoder()) : encoder }
    : { type: "json", headers, collector: isJson ? () => collectJson(collector()) : collector };
  return { type: "chat", ...chatInputOf({ ...conversation, session: session ?? conversation.session }), reply };
}

function responseCollector(agent: string): ResponseCollector {
  let response: JsonResponse | undefined;
  const encode = responseEncoder(agent, (complete) => response = complete);
  return (event, id) => {
    encode(event, id);
    return response;
  };
}
