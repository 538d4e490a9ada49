/**
 * The wire of AG-UI 1.0: what its `HttpAgent` speaks.
 *
 * @module
 */
import type { Wanted, Wire } from "../wire.ts";
import { telling } from "./events.ts";
import { runInput } from "./request.ts";

/** What `agUi()` takes. */
export interface AgUiOptions {
  /** Where the agent is served. Default: `/ag-ui`. */
  readonly path?: string;
}

/**
 * Speaks to `HttpAgent` of AG-UI 1.0. A thread is a session.
 *
 * `POST /ag-ui` takes the newest message of the thread, or what the client says to what the session asks: `resume`, or what calls came to of tools that the
 * client declares. Nothing else of the history that it sends is believed. What a person is asked interrupts the run; an answer is what the question's
 * `responseSchema` says, or simply `true`, `false` or a text. On a server with `resume tokens` the newest message keeps one as its `encryptedValue` and brings it
 * back; of what was said in earlier runs nobody knows there. Agents that are tools are told of as subagents.
 *
 * Data that is named `state` is the agent's state for its client, and other data a custom event. What else a client sends, such as its own state, its context
 * or `forwardedProps`, is for `vars`, which may read the body.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { agUi } from "@jizai/jizai/wire/ag_ui";
 * import { assertStringIncludes } from "@std/assert";
 *
 * const app = serve(agent({ model: scripted("Hello!") }), { wires: [agUi()] });
 *
 * const response = await app.request("/ag-ui", { // as new HttpAgent({ url }).runAgent() does
 *   method: "POST",
 *   headers: { "content-type": "application/json" },
 *   body: JSON.stringify({ threadId: "t1", runId: "r1", messages: [{ id: "m1", role: "user", content: "Hi" }] }),
 * });
 * assertStringIncludes(await response.text(), `"type":"TEXT_MESSAGE_CONTENT"`);
 * ```
 */
export function agUi({ path = "/ag-ui" }: AgUiOptions = {}): Wire {
  return { routes: () => [{ method: "POST", path, read: ({ body }) => read(body) }] };
}

function read(body: unknown): Wanted {
  const input = runInput(body);
  const { threadId: session, resumeToken, say } = input;
  return { type: "talk", session, resumeToken, say, reply: { type: "stream", open: () => telling(input) } };
}
