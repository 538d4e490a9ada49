/**
 * The client of a served agent.
 *
 * @module
 */
import { expectNames } from "../protocol/option_names.ts";
import type { Message } from "../protocol/message.ts";
import { type ClientOptions, post, send } from "./connection.ts";
import { type ClientRun, clientRun } from "./run.ts";
import { noRun, type RunState } from "./state.ts";

/** The input of a run: a prompt, or messages that the client holds, the last of them the user's. */
export type RunRequest =
  & {
    /** The session to continue. Default: a new session. */
    readonly session?: string;
    /** Stops reading the run when it aborts. The run itself is not stopped. Default: none. */
    readonly signal?: AbortSignal;
  }
  & ({ readonly prompt: string } | { readonly messages: readonly Message[] });

/** A client of one server. */
export interface Client {
  /** Begins a run. The request is sent when the first event is read. */
  run(request: RunRequest): ClientRun;
  /**
   * Begins a run in the background. Resolves when the server has accepted it. Its events can be read from then on, also later or elsewhere with `follow()`,
   * if the server has a log. Rejects with a `ClientError` if the request is refused.
   */
  start(request: RunRequest): Promise<ClientRun>;
  /**
   * Continues to read a run from a state, which may come from another page or process. If only the run's id is known, the state is `{ ...noRun, run }`.
   * `signal` stops reading.
   */
  follow(state: RunState, signal?: AbortSignal): ClientRun;
}

/**
 * Creates a client of the agent that is served at the URL `base`. After a lost connection the client requests the rest of the events, so none is lost and none
 * arrives twice. The `state` of a run contains every event that was read.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { client } from "@jizai/jizai/client";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const app = serve(agent({ model: scripted("Hello!") }));
 * const assistant = client("", { fetch: app.request }); // elsewhere: client("https://example.com/assistant")
 *
 * const run = assistant.run({ prompt: "Hi" });
 * for await (const _ of run.events) show(run.state.messages);
 * assertEquals([run.state.status, run.state.text], ["done", "Hello!"]);
 *
 * function show(_messages: typeof run.state.messages) {} // draws your page
 * ```
 *
 * A run in the background needs no connection. It continues on the server, and is read when the client wants to:
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { client } from "@jizai/jizai/client";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { memoryLog } from "@jizai/jizai/session/log";
 * import { assertEquals } from "@std/assert";
 *
 * const app = serve(agent({ model: scripted("Done.") }), { log: memoryLog() });
 * const assistant = client("", { fetch: app.request });
 *
 * const { state } = await assistant.start({ prompt: "Tidy up" }); // save `state`, and leave
 * const { text } = await assistant.follow(state).result(); // later, on any page
 * assertEquals(text, "Done.");
 * ```
 *
 * A paused run has questions, and `answer()` resumes it:
 *
 * ```ts
 * import { agent, serve, tool } from "@jizai/jizai";
 * import { client } from "@jizai/jizai/client";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const drop = tool({
 *   name: "drop",
 *   description: "Drops a table",
 *   input: z.object({ table: z.string() }),
 *   ask: true,
 *   execute: ({ table }) => `Dropped ${table}`,
 * });
 * const model = scripted({ calls: [["drop", { table: "users" }]] }, "It is gone.");
 * const app = serve(agent({ model, tools: [drop] }));
 *
 * const run = client("", { fetch: app.request }).run({ prompt: "Drop the users" });
 * const { questions } = await run.result();
 * const answers = questions.map(({ callId }) => ({ callId, type: "approve" } as const));
 * const { text } = await run.answer(answers).result();
 * assertEquals(text, "It is gone.");
 * ```
 */
export function client(base: string, options: ClientOptions = {}): Client {
  expectNames("Cannot create client()", options, ["fetch", "headers", "attempts", "silence"]);
  const server = { ...options, base };
  return {
    run: ({ signal, ...body }) => clientRun(server, noRun, signal, post("/runs", body)),
    async start({ signal, ...body }) {
      const request = post("/runs", body, { prefer: "respond-async" });
      const { run, session } = await (await send(server, request, signal)).json();
      return clientRun(server, { ...noRun, run, session }, signal);
    },
    follow: (state, signal) => clientRun(server, state, signal),
  };
}
