/**
 * Agents over HTTP: runs are begun by a request and streamed to its client.
 *
 * @module
 */
import type { Context, Env } from "hono";
import { Hono } from "hono/tiny";
import type { Agent } from "../core/agent.ts";
import { defaultLimits, limited, type Limits } from "../core/limits.ts";
import type { Started } from "../core/run.ts";
import { memory, type Store } from "../core/store.ts";
import { type AnswersBody, answersBody, bodyOf, type RunBody, runBody } from "./body.ts";
import { type OnFailure, Refusal, refuse } from "./refusal.ts";
import { type ClientGone, headers, streamed } from "./stream.ts";

/** What `serve()` takes. */
export interface ServeOptions {
  /** Where sessions are kept. Default: in the memory of this app. */
  readonly store?: Store;
  /** Changes of the agent's limits, for every run. Default: none. */
  readonly limits?: Partial<Limits>;
  /**
   * What becomes of a run whose client has gone: `stop` stops it, `drain` lets it finish its turn, `detach` lets it go on to its end.
   * What it says then is heard by nobody. Default: `stop`.
   */
  readonly onClientGone?: ClientGone;
  /** Milliseconds of silence after which a comment is sent at the latest, so that nobody in between hangs up. Default: 15,000. */
  readonly heartbeat?: number;
  /** The most bytes that the body of a request may have. Default: 1,048,576. */
  readonly maxBody?: number;
  /** Told of what went wrong, with the id that the client was told instead. Default: nobody is told. */
  readonly onError?: OnFailure;
}

/** What Hono takes a context for that nobody has said more of: one that may hold anything. */
export type AnyEnv = Context extends Context<infer E> ? E : never;

/** What an agent is told of the request it serves, made of the request's context. */
export interface VarsOf<V, E extends Env> {
  /** Makes them. Called for every run, once the body of its request has been read. */
  readonly vars: (c: Context<E>) => V | Promise<V>;
}

/** The options of `serve()`: `vars` is required where the agent needs any. */
export type ServeVars<V, E extends Env> = unknown extends V ? [options?: ServeOptions & Partial<VarsOf<unknown, E>>]
  : Record<never, never> extends V ? [options?: ServeOptions & Partial<VarsOf<V, E>>]
  : [options: ServeOptions & VarsOf<V, E>];

/**
 * Serves an agent: a Hono app, and so a `fetch` handler. Mount it with `route()` behind your own authentication, CORS and rate limits:
 * whoever reaches it and knows the id of a session or of a run may go on with the one and stop the other.
 *
 * - `POST /runs`, `{ prompt }` or `{ messages }`, and `session` to go on with one: the events of the run, as server-sent events.
 * - `POST /sessions/:id/answers`, `{ answers: [{ callId, type: "approve" | "deny" }] }`: the events of the paused run from there on.
 * - `POST /runs/:id/stop`: 204.
 * - `GET /health`: 200.
 *
 * What is not served is answered with `{ error: { code, message, field? } }`. Throws a `RangeError` for an option out of range.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertStringIncludes } from "@std/assert";
 *
 * const app = serve(agent({ model: scripted("Hello!") }));
 * const response = await app.request("/runs", {
 *   method: "POST",
 *   headers: { "content-type": "application/json" },
 *   body: JSON.stringify({ prompt: "Hi" }),
 * });
 * assertStringIncludes(await response.text(), `"type":"text.delta","turn":1,"part":0,"text":"Hello!"`);
 * ```
 */
export function serve<V, O, E extends Env = AnyEnv>(agent: Agent<V, O>, ...[options]: ServeVars<V, E>): Hono<E> {
  const { vars, maxBody, onError, store, limits, ...how } = settled<V, E>(options);
  const runs = new Map<string, Started>();

  /** Begins a run, or goes on with one, and answers with its events once it has its session. */
  async function begin(
    c: Context<E>,
    given: (RunBody | AnswersBody) & { readonly session: string },
  ): Promise<Response> {
    const told = { ...given, store, limits, onError, vars: await vars?.(c) };
    // vars are what the agent needs: the type of the options says so
    const { run, stream } = streamed((sink) => agent.start(told as Parameters<typeof agent.start>[0], sink), how);
    const { run: id } = await run.opened;
    runs.set(id, run);
    run.result.finally(() => runs.delete(id)); // it never rejects
    return c.body(stream, 200, headers);
  }

  return new Hono<E>()
    .onError((error, c) => refuse(error, c, onError))
    .notFound(() => {
      throw new Refusal(404, "unknown", "Cannot serve this path: there is none");
    })
    .post("/runs", async (c) => {
      const body = await bodyOf(c, runBody, maxBody);
      const { session = crypto.randomUUID() } = body;
      if (body.session !== undefined && !await store.load(session)) {
        throw new Refusal(404, "unknown", `Cannot run session "${session}": there is none`);
      }
      return await begin(c, { ...body, session });
    })
    .post("/sessions/:id/answers", async (c) => {
      const session = c.req.param("id");
      return await begin(c, { ...await bodyOf(c, answersBody, maxBody), session });
    })
    .post("/runs/:id/stop", (c) => {
      const id = c.req.param("id");
      const run = runs.get(id);
      if (!run) throw new Refusal(404, "unknown", `Cannot stop run "${id}": it does not run`);
      run.stop();
      return c.body(null, 204);
    })
    .get("/health", (c) => c.json({ status: "ok" }))
    .all("/runs", only("POST"))
    .all("/sessions/:id/answers", only("POST"))
    .all("/runs/:id/stop", only("POST"))
    .all("/health", only("GET, HEAD"));
}

/** Options with their defaults. */
function settled<V, E extends Env>(
  { store = memory(), limits = {}, onClientGone = "stop", heartbeat = 15_000, maxBody = 1_048_576, vars, onError }:
    & ServeOptions
    & Partial<VarsOf<V, E>> = {},
) {
  limited(defaultLimits, limits);
  // timers count in 31 bits, and take what is beyond for no time at all
  if (!(heartbeat > 0 && heartbeat < 2 ** 31)) throw new RangeError(`Cannot serve with a heartbeat of ${heartbeat} ms`);
  if (!(maxBody > 0)) throw new RangeError(`Cannot serve with bodies of at most ${maxBody} bytes`);
  return { store, limits, onClientGone, heartbeat, maxBody, vars, onError };
}

/** Answers every other method. */
function only(methods: string): (c: Context) => never {
  return (c) => {
    c.header("allow", methods);
    throw new Refusal(405, "method", `Cannot ${c.req.method} here: only ${methods}`);
  };
}
