/**
 * The wire of AG-UI 1.0, for its `HttpAgent`.
 *
 * @module
 */
import { expectNames } from "../../protocol/shape.ts";
import type { ParsedRequest, Wire } from "../wire.ts";
import { runEncoder } from "./events.ts";
import { runInput } from "./request.ts";
export type { Wire } from "../wire.ts";

/** Options of `agUi()`. */
export interface AgUiOptions {
  /** The path of the route. Default: `/ag-ui`. */
  readonly path?: string;
}

/**
 * Serves `HttpAgent` of AG-UI 1.0. The id of a thread is the id of its session.
 *
 * `POST /ag-ui` takes the newest message of the thread, or answers to the session's open questions: `resume`, or results of tools that the client declares.
 * The rest of the client's history is ignored. A question interrupts the run. Its answer is an object of the question's `responseSchema`, or simply `true`,
 * `false` or a text. On a server with `resumeTokens`, the newest message carries the token as its `encryptedValue` and brings it back; the server then knows
 * nothing about earlier runs. A subagent is an AG-UI subagent.
 *
 * Data events named `state` become state snapshots, and other data events become custom events. The partial output of an agent with a `streamed()` schema is
 * the member `output` of the state. The `metadata` of a `RUN_ERROR` has the error's `id`, and `retryAfter` in milliseconds if the provider named it. The
 * client's own state, context and `forwardedProps` are ignored; `vars` may read them from the body.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { agUi } from "@jizai/jizai/wire/ag_ui";
 * import { assertStringIncludes } from "@std/assert";
 *
 * const app = serve(agent({ model: scripted("Hello!") }), { wires: [agUi()] });
 *
 * const response = await app.request("/ag-ui", { // the request of new HttpAgent({ url }).runAgent()
 *   method: "POST",
 *   headers: { "content-type": "application/json" },
 *   body: JSON.stringify({ threadId: "t1", runId: "r1", messages: [{ id: "m1", role: "user", content: "Hi" }] }),
 * });
 * assertStringIncludes(await response.text(), `"type":"TEXT_MESSAGE_CONTENT"`);
 * ```
 */
export function agUi(options: AgUiOptions = {}): Wire {
  expectNames("Cannot create agUi()", options, ["path"]);
  const { path = "/ag-ui" } = options;
  return { routes: () => [{ method: "POST", path, parse: ({ body }) => parse(body) }] };
}

function parse(body: unknown): ParsedRequest {
  const request = runInput(body);
  const { threadId: session, resumeToken, input } = request;
  return { type: "chat", session, resumeToken, input, reply: { type: "stream", encoder: () => runEncoder(request) } };
}
