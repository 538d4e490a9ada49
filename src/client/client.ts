/**
 * The client: runs on a server, wherever it is reached from.
 *
 * @module
 */
import type { Message } from "../protocol/message.ts";
import { type ClientOptions, post } from "./connection.ts";
import { type ClientRun, hear } from "./run.ts";
import { noRun, type RunState } from "./state.ts";

/** What a run begins with: a prompt, or the messages that the client holds, the last of them the person's. */
export type RunRequest =
  & {
    /** The session that it goes on with. Default: a new one. */
    readonly session?: string;
    /** Leaves the run, which does not stop it. Default: nothing does. */
    readonly signal?: AbortSignal;
  }
  & ({ readonly prompt: string } | { readonly messages: readonly Message[] });

/** A way to the runs of a server. */
export interface Client {
  /** Begins a run. */
  run(request: RunRequest): ClientRun;
  /**
   * Goes on with a run from what was heard of it, on any page and in any process; `{ ...noRun, run }` of one whose id is all that is known. `signal`
   * leaves it again.
   */
  follow(state: RunState, signal?: AbortSignal): ClientRun;
}

/**
 * Reaches a served agent at `base`, the address that it is mounted at. Where a stream is cut, the rest of it is asked for: nothing is lost, and
 * nothing comes twice. What a run has come to is in its `state`, with every event that is read.
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
 * function show(_messages: typeof run.state.messages) {} // as your page does
 * ```
 *
 * A run that is paused says what a person is asked, and `answer()` goes on with it:
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
 * const answers = questions.map(({ callId = "" }) => ({ callId, type: "approve" } as const));
 * const { text } = await run.answer(answers).result();
 * assertEquals(text, "It is gone.");
 * ```
 */
export function client(base: string, options: ClientOptions = {}): Client {
  const server = { ...options, base };
  return {
    run: ({ signal, ...body }) => hear(server, noRun, signal, post("/runs", body)),
    follow: (state, signal) => hear(server, state, signal),
  };
}
