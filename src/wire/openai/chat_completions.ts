/**
 * Chat completions, as OpenAI has them.
 *
 * @module
 */
import type { Reply, Wanted, Wire, WireRequest } from "../wire.ts";
import { completed, streamed } from "./chat_reply.ts";
import { chatRequest } from "./chat_request.ts";
import { refuse } from "./ended.ts";
import { models, type OpenaiOptions, wholeHeaders as headers } from "./models.ts";
import { talkOf } from "./said.ts";

/**
 * Speaks to clients of OpenAI's chat completions, and to whatever is compatible with them. The client holds the conversation. The model that it names is not
 * looked at: the agent answers.
 *
 * - `POST /v1/chat/completions`, streamed and not.
 * - `GET /v1/models`, and `GET /v1/models/:id`: the agent.
 *
 * The agent's own tools run here, unseen. Those that a request declares are its client's: a call of one comes back as a tool call, whose id says which session
 * waits, and the run goes on once a request brings what it came to. What a person is asked about a call can only be said, as text.
 * On a server with `resume tokens` no call can be answered, since nothing in a request would bring them back.
 *
 * Hints to a model, such as `temperature`, are left alone, since the agent's model is its own. What asks for another kind of answer, such as `response_format`
 * that is no text, is refused.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { chatCompletions } from "@jizai/jizai/wire/openai";
 * import { assertEquals } from "@std/assert";
 *
 * const app = serve(agent({ model: scripted("Hello!") }), { wires: [chatCompletions()] });
 *
 * const response = await app.request("/v1/chat/completions", { // as any client does
 *   method: "POST",
 *   headers: { "content-type": "application/json" },
 *   body: JSON.stringify({ model: "agent", messages: [{ role: "user", content: "Hi" }] }),
 * });
 * const { choices } = await response.json();
 * assertEquals(choices[0].message.content, "Hello!");
 * ```
 */
export function chatCompletions({ path = "/v1" }: OpenaiOptions = {}): Wire {
  return {
    routes: (agent) => [
      { method: "POST", path: `${path}/chat/completions`, read: (request) => read(agent, request), refuse },
      ...models(agent, path),
    ],
  };
}

function read(agent: string, { body, session }: WireRequest): Wanted {
  const { conversation, stream, usage } = chatRequest(body);
  const reply: Reply = stream
    ? { type: "stream", open: () => streamed(agent, usage) }
    : { type: "whole", headers, open: () => completed(agent) };
  return { type: "talk", ...talkOf({ ...conversation, session }), reply };
}
