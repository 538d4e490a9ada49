/**
 * The Responses API, as OpenAI has it.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import type { Reply, Wanted, Whole, Wire, WireRequest } from "../wire.ts";
import { refuse } from "./ended.ts";
import { type OpenaiOptions, wholeHeaders as headers } from "./models.ts";
import { responding } from "./responses_reply.ts";
import { responsesRequest } from "./responses_request.ts";
import { talkOf } from "./said.ts";

/**
 * Speaks to clients of OpenAI's Responses API. The model that they name is not looked at: the agent answers.
 *
 * - `POST /v1/responses`, streamed and not. With a `previous_response_id` the session of that response goes on, as it is now; without one the client holds
 *   the conversation.
 *
 * The agent's own tools run here, unseen. Those that a request declares are its client's: a call of one comes back as a function call, whose id says which
 * session waits, and the run goes on once a request brings what it came to. What a person is asked about a call is a request for an approval, as of a call to
 * an MCP server. On a server with `resume tokens` no call can be answered, since nothing in a request would bring them back.
 *
 * Hints to a model, such as `temperature`, are left alone, since the agent's model is its own. What asks for another kind of answer, such as `text.format`
 * that is no text, is refused.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { responses } from "@jizai/jizai/wire/openai";
 * import { assertEquals } from "@std/assert";
 *
 * const app = serve(agent({ model: scripted("Hello!") }), { wires: [responses()] });
 *
 * const response = await app.request("/v1/responses", { // as any client does
 *   method: "POST",
 *   headers: { "content-type": "application/json" },
 *   body: JSON.stringify({ model: "agent", input: "Hi" }),
 * });
 * const { output } = await response.json();
 * assertEquals(output[0].content[0].text, "Hello!");
 * ```
 */
export function responses({ path = "/v1" }: OpenaiOptions = {}): Wire {
  return {
    routes: (agent) => [
      { method: "POST", path: `${path}/responses`, read: (request) => read(agent, request), refuse },
    ],
  };
}

function read(agent: string, { body, session }: WireRequest): Wanted {
  const { conversation, stream } = responsesRequest(body);
  const reply: Reply = stream ? { type: "stream", open: () => responding(agent) } : { type: "whole", headers, open };

  function open() {
    let told: Whole | undefined;
    const tell = responding(agent, (whole) => told = whole);
    return (event: Event, id: number) => {
      tell(event, id);
      return told;
    };
  }
  return { type: "talk", ...talkOf({ ...conversation, session: session ?? conversation.session }), reply };
}
