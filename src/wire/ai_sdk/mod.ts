/**
 * The wires of the AI SDK's `useChat` and `useObject`.
 *
 * @module
 */
import { expectNames } from "../../protocol/shape.ts";
import type { Reply, Wire } from "../wire.ts";
import { chunkEncoder } from "./chunks.ts";
import { messagesOf } from "./messages.ts";
import { chatRequest } from "./request.ts";

export { aiSdkObject, type AiSdkObjectOptions } from "./object.ts";

/** Options of `aiSdkUi()` and `aiSdkMessages()`. */
export interface AiSdkUiOptions {
  /** The path of the routes. Default: `/chat`. */
  readonly path?: string;
}

const reply: Reply = { type: "stream", headers: { "x-vercel-ai-ui-message-stream": "v1" }, encoder: chunkEncoder };

/**
 * Serves `useChat` and `DefaultChatTransport` of the AI SDK, with the UI message stream v1. The id of a chat is the id of its session.
 *
 * - `POST /chat` takes the newest message of the chat, or the approvals and tool outputs in it. The rest of the client's history is ignored: the session has
 *   the history, and only its open questions can be answered. `regenerate()` removes the answer and its prompt from the session and answers the prompt anew.
 *   `sendMessage({ text, messageId })` removes that message and everything after it, and answers the new text. If the session does not have the message, for
 *   example because a hook refused it, nothing is removed.
 * - `GET /chat/:id/stream` sends every chunk of the last run from the start, for `resume: true`. It answers 204 if there is no run. It needs a `log`, and an
 *   `onClientGone` other than "stop".
 * - `DELETE /chat/:id/stream` stops the run. Call it from the page's Stop button if `onClientGone` is not "stop".
 *
 * A call inside a subagent is a part of its own, and the subagent's text arrives as transient `data-subagent`. A question of a hook about the run is shown
 * as text, and the next message answers it. On a server with `resumeTokens`, the message that asks carries the token in its metadata and brings it back; the
 * server then knows nothing about earlier runs. Data events arrive as `data-<name>`. If their data has an `id`, so does the part.
 * The changes of a `streamed()` output arrive as transient `data-output`; `PartialOutput` of `@jizai/jizai/output` folds them in `onData`.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
 * import { assertStringIncludes } from "@std/assert";
 *
 * const app = serve(agent({ model: scripted("Hello!") }), { wires: [aiSdkUi()] });
 *
 * const messages = [{ id: "m1", role: "user", parts: [{ type: "text", text: "Hi" }] }];
 * const response = await app.request("/chat", { // the request of useChat()
 *   method: "POST",
 *   headers: { "content-type": "application/json" },
 *   body: JSON.stringify({ id: "c1", messages }),
 * });
 * assertStringIncludes(await response.text(), `{"type":"text-delta","id":"1.0","delta":"Hello!"}`);
 * ```
 */
export function aiSdkUi(options: AiSdkUiOptions = {}): Wire {
  expectNames("Cannot create aiSdkUi()", options, ["path"]);
  const { path = "/chat" } = options;
  const stream = `${path}/:jizai_chat/stream`;
  return {
    routes: () => [
      { method: "POST", path, parse: ({ body }) => ({ type: "chat", ...chatRequest(body), reply }) },
      {
        method: "GET",
        path: stream,
        parse: ({ params: { jizai_chat: id = "" } }) => ({ type: "follow", session: id, reply }),
      },
      {
        method: "DELETE",
        path: stream,
        parse: ({ params: { jizai_chat: id = "" } }) => ({ type: "stop", session: id }),
      },
    ],
  };
}

/**
 * Serves the messages of a chat, so that a page can be reloaded: `GET /chat/:id` returns them, or 404 for an unknown chat. Together with `resume: true` the
 * page shows a running or paused chat completely, with its open questions, and shows nothing twice. Data events are not included.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
 * import { assertEquals } from "@std/assert";
 *
 * const app = serve(agent({ model: scripted("Hello!") }), { wires: [aiSdkUi(), aiSdkMessages()] });
 *
 * const messages = [{ id: "m1", role: "user", parts: [{ type: "text", text: "Hi" }] }];
 * const answer = await app.request("/chat", { // the request of useChat()
 *   method: "POST",
 *   headers: { "content-type": "application/json" },
 *   body: JSON.stringify({ id: "c1", messages }),
 * });
 * await answer.text();
 *
 * const response = await app.request("/chat/c1"); // after a reload
 * const [hi, hello] = response.ok ? await response.json() : [];
 * assertEquals(hi.parts, [{ type: "text", text: "Hi" }]);
 * assertEquals(hello.parts, [{ type: "step-start" }, { type: "text", text: "Hello!", state: "done" }]);
 * ```
 */
export function aiSdkMessages(options: AiSdkUiOptions = {}): Wire {
  expectNames("Cannot create aiSdkMessages()", options, ["path"]);
  const { path = "/chat" } = options;
  return {
    routes: () => [{
      method: "GET",
      path: `${path}/:jizai_chat`,
      parse: ({ params: { jizai_chat: id = "" } }) => ({ type: "session", session: id, body: messagesOf }),
    }],
  };
}
