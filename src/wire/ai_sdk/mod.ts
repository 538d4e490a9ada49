/**
 * The AI SDK's wire: what `useChat` speaks.
 *
 * @module
 */
import type { Reply, Wire } from "../wire.ts";
import { chunking } from "./chunks.ts";
import { messagesOf } from "./messages.ts";
import { chatOf } from "./request.ts";

/** What `aiSdkUi()` and `aiSdkMessages()` take. */
export interface AiSdkUiOptions {
  /** Where chats are served. Default: `/chat`. */
  readonly path?: string;
}

const reply: Reply = { type: "stream", headers: { "x-vercel-ai-ui-message-stream": "v1" }, open: chunking };

/**
 * Speaks to `useChat` and `DefaultChatTransport` of the AI SDK: the UI message stream v1. A chat's id is its session's.
 *
 * - `POST /chat`: the newest message of the chat, or the approvals and tool outputs in it. Nothing else of the history that a chat sends is believed: what
 *   was said before is in the session, and only what that asks can be answered.
 * - `GET /chat/:id/stream`: all that the last run has told, and whatever comes then, for a chat that resumes; 204 where there was none. Needs a `log`, and
 *   an `onClientGone` that is not "stop".
 * - `DELETE /chat/:id/stream`: stops the run, for a chat whose runs outlive its connections.
 *
 * A call within an agent that is a tool is a part of its own, and what that agent writes comes as transient `data-subagent`. What a hook asks about the run
 * is said as text, and answered by the next message. On a server with `resume tokens` the message that asks keeps one in its metadata and brings it back; of what
 * was said in earlier runs nobody knows there. Data events come as `data-<name>`, with the `id` in their data, if any.
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
 * const response = await app.request("/chat", { // as useChat() does
 *   method: "POST",
 *   headers: { "content-type": "application/json" },
 *   body: JSON.stringify({ id: "c1", messages }),
 * });
 * assertStringIncludes(await response.text(), `{"type":"text-delta","id":"1.0","delta":"Hello!"}`);
 * ```
 */
export function aiSdkUi({ path = "/chat" }: AiSdkUiOptions = {}): Wire {
  return {
    routes: () => [
      { method: "POST", path, read: ({ body }) => ({ type: "talk", ...chatOf(body), reply }) },
      {
        method: "GET",
        path: `${path}/:id/stream`,
        read: ({ params: { id = "" } }) => ({ type: "follow", session: id, reply }),
      },
      {
        method: "DELETE",
        path: `${path}/:id/stream`,
        read: ({ params: { id = "" } }) => ({ type: "stop", session: id }),
      },
    ],
  };
}

/**
 * Tells `useChat` what there is of a chat, for a page that was loaded anew: `GET /chat/:id` gives its messages, 404 where there is none. They go together
 * with `resume: true`, whatever the chat is in the middle of: with what a person is asked, and without anything twice. What was sent as data is not in them.
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
 * const answer = await app.request("/chat", { // as useChat() does
 *   method: "POST",
 *   headers: { "content-type": "application/json" },
 *   body: JSON.stringify({ id: "c1", messages }),
 * });
 * await answer.text();
 *
 * const response = await app.request("/chat/c1"); // as a page does that is loaded anew
 * const [hi, hello] = response.ok ? await response.json() : [];
 * assertEquals(hi.parts, [{ type: "text", text: "Hi" }]);
 * assertEquals(hello.parts, [{ type: "step-start" }, { type: "text", text: "Hello!", state: "done" }]);
 * ```
 */
export function aiSdkMessages({ path = "/chat" }: AiSdkUiOptions = {}): Wire {
  return {
    routes: () => [{
      method: "GET",
      path: `${path}/:id`,
      read: ({ params: { id = "" } }) => ({ type: "show", session: id, body: messagesOf }),
    }],
  };
}
