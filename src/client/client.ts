/**
 * The client of a served agent.
 *
 * @module
 */
import {
  ClientError,
  type ClientOptions,
  isAddress,
  post,
  readFrames,
  send,
  type Server,
  type ServerRequest,
} from "./connection.ts";
import { fold, noRun, type RunState } from "./state.ts";
import type { Event } from "../protocol/event.ts";
import type { Message } from "../protocol/message.ts";
import type { PersonAnswer } from "../protocol/question.ts";
import { expectNames } from "../protocol/shape.ts";

// A run on a server, read to its end over as many connections as necessary.

/** A run on a server. */
export interface ClientRun {
  /** The state after the last event that was read. */
  readonly state: RunState;
  /**
   * The events until the run ends or pauses, each once. The request is sent when the first event is read. Leaving the loop does not stop the run. Throws a
   * `ClientError` if the request is refused or given up, and the reason of the signal if it aborts.
   */
  readonly events: AsyncIterable<Event>;
  /** Reads the events to their end and returns the state. If a loop over the events was left, returns the state at that event. */
  result(): Promise<RunState>;
  /**
   * Stops the run. The events of a running one tell when it has stopped. A paused one takes no answers afterwards; its state stays "paused". Rejects with a
   * `ClientError` if the run has not begun, or if it is paused and the server has `resumeTokens` instead of stored sessions. If the run is over, a server
   * that keeps no events rejects the request, too.
   */
  stop(): Promise<void>;
  /** Answers the questions of a paused run. Returns the rest of the run, which rejects with a `ClientError` if the run has not begun. */
  answer(answers: readonly PersonAnswer[]): ClientRun;
}

/** Creates the run that `opening` begins or resumes. Without `opening`, continues to read the run of `state`. */
function clientRun(
  server: Server,
  state: RunState,
  signal?: AbortSignal,
  opening?: ServerRequest,
): ClientRun {
  const { at } = state;

  function path(): string {
    if (!state.run) throw new ClientError("Cannot reach the run: it has not begun", 0, "unknown");
    return `/runs/${encodeURIComponent(state.run)}`;
  }

  async function* readEvents(): AsyncGenerator<Event> {
    const { attempts = 8, base } = server;
    let due = opening;
    let cause: unknown;
    for (let attempt = 0;; attempt++) {
      signal?.throwIfAborted();
      if (!(attempt < attempts)) { // also if it is not a number
        const { status, code } = cause instanceof ClientError ? cause : {};
        throw new ClientError(`Cannot read the run: ${attempts} attempts failed`, status, code, { cause });
      }
      if (attempt > 0) await pause(Math.min(15_000, 125 * 2 ** attempt) * (1 + Math.random()), signal);
      const request: ServerRequest = (state.run ? due : opening) ?? [path(), { "last-event-id": `${state.at}` }];
      due = undefined;
      try {
        for await (const frame of readFrames(server, request, signal)) {
          const before = state;
          state = fold(state, frame);
          if (state === before) continue;
          attempt = 0;
          yield frame.event;
        }
      } catch (error) {
        if (error instanceof TypeError && state.at === at && !server.fetch && !isAddress(base)) {
          throw new ClientError(`Cannot reach the server: "${base}" has no scheme`, 0, "lost", { cause: error });
        }
        const status = error instanceof ClientError ? error.status : 0;
        if (!isTransient(status, attempt)) throw error;
        cause = error;
        if (status === 204) due = opening; // the server did not receive it
        else if (state.status === "paused") continue; // it may have been resumed since
      }
      if (isOver(state) && (!opening || state.at > at)) return;
    }
  }

  const events = readEvents();
  return {
    get state() {
      return state;
    },
    events,
    async result() {
      for await (const _ of events); // the state contains them
      return state;
    },
    async stop() {
      const { session } = state;
      const query = session ? `?session=${encodeURIComponent(session)}` : "";
      await send(server, post(`${path()}/stop${query}`, {}));
    },
    answer(answers) {
      const { run, session, at, resumeToken } = state;
      if (session === undefined) return clientRun(server, noRun, signal); // rejects, because the run has not begun
      const request = post(`/sessions/${encodeURIComponent(session)}/answers`, { answers, run, at, resumeToken });
      return clientRun(server, state, signal, request);
    },
  };
}

/** Waits until the time is over or the signal aborts. */
function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
    function end(): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    }
  });
}

/** Whether another attempt may succeed. A repeated request may conflict with its first attempt, whose response was lost. */
function isTransient(status: number, attempt: number): boolean {
  return status === 0 || status === 204 || status >= 500 || status === 429 || (status === 409 && attempt > 0);
}

/** Whether the run has ended or paused. */
function isOver({ status }: RunState): boolean {
  return status !== "starting" && status !== "running";
}

// The client of a server: it sends prompts and answers, and follows their runs over broken connections.

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
   * unless the server has `resumeTokens` and no `store`. Rejects with a `ClientError` if the request is refused.
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
 * import { assertEquals } from "@std/assert";
 *
 * const app = serve(agent({ model: scripted("Done.") }));
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
