/**
 * `serve()`: an agent over HTTP.
 *
 * @module
 */
import type { Context, Env } from "hono";
import { Hono } from "hono/tiny";
import { Admissions } from "./capacity.ts";
import { Idempotency, SessionQueue } from "./queue.ts";
import { hasTrace } from "../core/definition.ts";
import { expectCount } from "../core/lib/options.ts";
import type { Recover, SessionName, Sweep } from "../core/store.ts";
import type { recoveryOf } from "../session/durable/recovery.ts";
import type { ServerStats } from "./facts.ts";
import { Streams } from "./load.ts";
import { LiveRuns } from "./live_runs.ts";
import { readiness } from "./readiness.ts";
import {
  type DefaultEnv,
  type RequestVars,
  resolveOptions,
  type ServedAgent,
  type ServeOptions,
  type ServerOptions,
} from "./options.ts";
import { nativeRoutes, wireRoute } from "./routes.ts";
import type { Server } from "./operation.ts";
import { requestPath } from "./request_path.ts";
import { errorResponse, RequestError, shuttingDown } from "./error_response.ts";
import { nextTick, promiseTry } from "../stream/tick.ts";

/** An agent over HTTP. */
export type ServedApp<E extends Env = DefaultEnv> = Hono<E> & {
  /**
   * Takes over runs whose process died, so that they end although no client asks. Call it where the platform wakes the program: a timer, a cron job, an
   * alarm, a queue. The store must contain sessions of this agent only. A server with sessions in memory has no such runs.
   */
  readonly recover: Recover;
  /**
   * Deletes what is not kept any more, in steps, until nothing is left. These are the events of runs that have been over for `events.keep`, and the sessions and
   * idempotency keys that have expired: no request finds them any more. Call it where `recover()` is called, once an hour or a day. Several processes may
   * call it at once. Without it, a server deletes one step a minute, after a run. Rejects if the store fails or `limit` is no whole number of at least 1.
   */
  readonly sweep: Sweep;
  /**
   * Deletes a session and what belongs to it: its messages and events, its mail, the idempotency keys of its runs, and the reports of their ends that are owed. A
   * run in progress is stopped before, in whichever process; if it does not end within five seconds, it goes on without a session, and nothing of it is stored. A
   * paused run is gone, without its `abort` hooks. A session that does not exist counts as deleted, so the call may be repeated. `DELETE /sessions/:id` calls it for
   * the owner of the request.
   */
  readonly deleteSession: (id: string, name?: SessionName) => Promise<void>;
  /**
   * Resolves when each run that this process executes has ended or paused, and `onEnd` has received that, or was handed over because `signal` aborted. After
   * an abort, a report that fails is not retried. Await it before the process exits: runs in the background have no response that would keep the server open.
   */
  readonly settled: () => Promise<void>;
  /** Returns what this process holds at this time, for gauges. */
  readonly stats: () => ServerStats;
  /** The server, for features of it that are imports of their own. */
  readonly "~server": object;
};

/**
 * Serves an agent as a Hono app, which is a `fetch` handler. Mount it with `route()` behind your own authentication, CORS and rate limits.
 *
 * With `owner`, a request reaches only the sessions and runs of its owner. Without it, an id is a key: a client that knows the id of a session or run can read
 * it, continue it and stop it.
 *
 * Without options, there is no authentication, a client that disconnects stops its run, a second prompt to a busy session is refused with 409, and a restart
 * loses the sessions.
 *
 * - `POST /runs`, `{ prompt }` or `{ messages }`, and `session` to continue one: the events of the run, as server-sent events.
 *   With `Prefer: respond-async`, the run continues in the background: 202, with its address in `Location` and `{ run, session }`.
 * - `GET /runs/:id`, with `Last-Event-ID` or `?after=`: the events after that one, and those that follow.
 * - `POST /runs/:id/messages`, `{ text }` or `{ parts }`, and `after: "calls"` to skip the calls that have not begun: 202; the run receives the message.
 * - `POST /runs/:id/finish`: 204; the run answers once more, without tools, and ends.
 * - `POST /runs/:id/stop`, with `?rollback` to keep nothing of it: 204 once the stop is accepted; the run may be paused or executed by another process.
 * - `GET /sessions/:id`: its messages, and the run that has it. With `?limit`, the last messages of its history, and with `?before` those before them.
 * - `DELETE /sessions/:id`: 204 once the session and its events are deleted. Its run is stopped before.
 * - `POST /sessions/:id/answers`, `{ answers: [{ callId, type: "approve" | "deny" | "reply" }] }`: the events of the paused run from there on. With `run` and
 *   `at`, the run and the number of its `run.paused` event, a later pause is not answered.
 * - `POST /sessions/:id/compact`, `{}` or `{ instructions }`: the events of a run that compacts the transcript.
 * - `POST /calls`, `{ name, input }`, only with a `page` and an agent with `trace`: the events of a run that makes this call in place of asking its model.
 * - `GET /health`: 200.
 * - `GET /ready`: 200, or 503 while the store does not answer within a second, no further run is admitted, or the server shuts down.
 * - `GET /`: the `page`, if there is one.
 *
 * The app has a function `recover()`, which continues runs whose process died. Call it from a timer or from what wakes a program on the platform.
 *
 * `wires` add the routes of other clients' dialects, to the same runs. `owner` and `vars` are called for every request except `GET /`, `GET /health` and `GET /ready`, so
 * each of them can guard all routes. The variables that the middleware in front of the app sets have types: `serve<AppEnv>(agent, { owner: (c) => c.get("user") })`,
 * or `vars: (c: Context<AppEnv>) => ({ user: c.get("user") })`, whose `AppEnv` holds for the other options too. With type arguments, the vars that an agent
 * needs are the second one. Without them, `c.get()` knows the variables that Hono's middleware declares, such as `jwtPayload` of `hono/jwt`.
 *
 * Errors are answered with `{ error: { code, message, field? } }`. Throws a `RangeError` for an option out of range, and a `TypeError` for an unknown
 * option and for a value that is not an agent.
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
export function serve<E extends Env = DefaultEnv, V = Record<never, never>>(
  agent: ServedAgent<V>,
  // The agent alone determines V, and keeps the literal types of `vars`. The last part infers E from the type of its `c`.
  options: ServeOptions<E> & NoInfer<RequestVars<V, E>> & RequestVars<NoInfer<V>, E>,
): ServedApp<E>;
/** Serves an agent that needs no vars. */
export function serve<E extends Env = DefaultEnv>(
  agent: ServedAgent<Record<never, never>>,
  options?: ServeOptions<E>,
): ServedApp<E>;
export function serve(agent: ServedAgent<never>, serveOptions?: ServeOptions): ServedApp {
  if (typeof agent?.start !== "function") {
    throw new TypeError("Cannot serve: expected an agent, such as agent({ model })");
  }
  const options = resolveOptions(serveOptions);
  const runs = new LiveRuns(agent, options);
  const queue = new SessionQueue(runs);
  const streams = new Streams();
  const { capacity, lease } = options;
  const admissions = new Admissions(capacity, lease, () => ({ ...runs.currentLoad(), streams: streams.size }));
  const server: Server = { options, runs, queue, streams, admissions, idempotency: new Idempotency(options) };
  const fail = (error: unknown, c: Context) => errorResponse(error, c, options);
  const app = new Hono<DefaultEnv>();
  const allowed = new Map<string, readonly string[]>();
  /** Adds a route. Every other method of its path is answered with 405. */
  function add(method: string, path: string, handler: (c: Context) => Response | Promise<Response>): void {
    app.on(method, path, handler);
    allowed.set(path, [...allowed.get(path) ?? [], method]);
  }

  const wireRoutes = options.wires.flatMap((wire) => wire.routes(agent.name, agent)).map((route) =>
    wireRoute(route, options)
  );
  for (const route of [...wireRoutes, ...nativeRoutes(options, options.page !== undefined && hasTrace(agent))]) {
    add(route.method, route.path, requestPath(route, server));
  }
  add("GET", "/health", (c) => options.signal?.aborted ? fail(shuttingDown(), c) : c.json({ status: "ok" }));
  const ready = readiness(options, admissions);
  add("GET", "/ready", async (c) => {
    const reason = await ready();
    return reason ? fail(reason, c) : c.json({ status: "ready" });
  });
  const { page } = options;
  if (page) add("GET", "/", (c) => promiseTry(() => page(agent)).catch((error) => fail(error, c)));
  for (const [path, methods] of allowed) {
    const allow = methods.join(", ").replace("GET", "GET, HEAD"); // Hono answers HEAD where there is GET
    app.all(path, (c) => {
      c.header("allow", allow);
      return fail(new RequestError(405, "method", `Cannot ${c.req.method} here: only ${allow}`), c);
    });
  }
  app.onError(fail).notFound((c) => fail(new RequestError(404, "unknown", "Cannot serve this path: there is none"), c));
  const stats = (): ServerStats => ({
    runs: runs.size,
    streams: streams.size,
    followers: streams.followers,
    queued: queue.size,
    waiting: runs.waiting,
    bytes: runs.currentLoad().bytes(),
  });
  return Object.assign(app, {
    recover: recoverOf(runs, options, admissions),
    sweep: sweepOf(runs, options),
    deleteSession: (id: string, name: SessionName = {}) => runs.delete(id, name),
    settled: () => runs.settled(),
    stats,
    "~server": server,
  });
}

/** Returns the `sweep()` of a server. */
function sweepOf(runs: LiveRuns, { signal }: ServerOptions): Sweep {
  return async ({ limit = 100 } = {}) => {
    expectCount("Cannot sweep", { limit });
    let swept = 0;
    for (let count = limit; count >= limit && !signal?.aborted;) {
      count = await runs.sweep(limit);
      swept += count;
      await new Promise<void>((resolve) => nextTick(resolve)); // a database of this process lets no other work begin in between
    }
    return swept;
  };
}

/** Returns the `recover()` of a server. Its store brings the code. */
function recoverOf(
  runs: LiveRuns,
  { store, vars, recoveryVars, signal }: ServerOptions,
  admissions: Admissions,
): Recover {
  // its type is `recoveryOf` of the same package
  const recoverRuns = store && (store.durable?.recovery as typeof recoveryOf | undefined)?.(store, runs);
  return async (recoverOptions) => {
    const limit = recoverOptions?.limit;
    if (limit !== undefined && !(Number.isSafeInteger(limit) && limit >= 1)) {
      throw new RangeError(`Cannot recover runs: \`limit\` is ${limit}; expected a whole number of at least 1`);
    }
    if (vars && !recoveryVars) {
      throw new TypeError("Cannot recover runs: their vars are made from requests; expected the option recoveryVars");
    }
    if (!recoverRuns || signal?.aborted || admissions.isFull) return { runs: [], over: Promise.resolve() };
    const recovered = recoverRuns(recoverOptions);
    runs.track(recovered.then(() => {}, () => {})); // the caller receives the failure
    return await recovered;
  };
}
