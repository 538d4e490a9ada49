/**
 * Agents over HTTP: runs are begun by a request and streamed to its client.
 *
 * @module
 */
import type { Context, Env } from "hono";
import { Hono } from "hono/tiny";
import type { Agent } from "../core/agent.ts";
import { beginning } from "./begin.ts";
import { answersBody, bodyOf, runBody } from "./body.ts";
import { callerOf } from "./caller.ts";
import { followRun, showSession } from "./known.ts";
import { type AnyEnv, type ServeVars, settled } from "./options.ts";
import { Refusal, refuse, shutdown } from "./refusal.ts";
import { runsOf } from "./runs.ts";
import type { Served } from "./served.ts";
import { finishRun, sendMessage, stopRun } from "./steer.ts";
import { speaking } from "./wires.ts";

/**
 * Serves an agent: a Hono app, and so a `fetch` handler. Mount it with `route()` behind your own authentication, CORS and rate limits. With `owner`, what a
 * request makes and reaches is its owner's alone. Without it an id is a key: whoever knows that of a session or of a run may read it, go on with the one and
 * stop the other.
 *
 * - `POST /runs`, `{ prompt }` or `{ messages }`, and `session` to go on with one: the events of the run, as server-sent events.
 * - `GET /runs/:id`, with a `Last-Event-ID` or `?after=`: the events after that one, and whatever comes then; needs a `log`.
 * - `POST /runs/:id/messages`, `{ text }` or `{ parts }`, and `after: "calls"` where calls that have not begun are to be skipped: 202; the run hears of it.
 * - `POST /runs/:id/finish`: 204; the run answers once more, without tools, and ends.
 * - `POST /runs/:id/stop`, with `?rollback` to keep nothing of it: 204 once it stops; it may run elsewhere or wait for a person, where there is a `log`.
 * - `GET /sessions/:id`: its messages, and the run that has it.
 * - `POST /sessions/:id/answers`, `{ answers: [{ callId, type: "approve" | "deny" | "reply" }] }`, and `run` and `at`, the run that asked and the number of
 *   the event, so that what was asked since is not answered: the events of the paused run from there on.
 * - `POST /sessions/:id/compact`, `{}` or `{ instructions }`: the events of a run that compacts its transcript, and does nothing else.
 * - `GET /health`: 200.
 * - `GET /`: the `page`, where there is one.
 *
 * `wires` add the routes of other clients' dialects, to the same runs.
 *
 * What is not served is answered with `{ error: { code, message, field? } }`. Throws a `RangeError` for an option out of range, and a `TypeError` for a
 * `store` beside `resume tokens`.
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
  const how = settled(options);
  // vars are what the agent needs: the type of the options says so
  const runs = runsOf((told, sink) => agent.start(told as Parameters<typeof agent.start>[0], sink), how);
  const served: Served = { how, runs };
  const { begin, answer, compact } = beginning(served);
  const app = new Hono<E>();
  app.use((c, next) => next().catch((thrown) => refuse(thrown, c, how.onError))); // what is no error, Hono lets through
  const routes = how.wires.flatMap((wire) => wire.routes(agent.name));
  for (const route of routes) app.on(route.method, route.path, speaking(route, served, { begin, answer }));
  for (const [path, at] of Map.groupBy(routes, ({ path }) => path)) {
    app.all(path, only([...new Set(at.map(({ method }) => method))].join(", ")));
  }

  const get = (path: string, handle: Handle) => app.get(path, handle).all(path, only("GET, HEAD"));
  const post = (path: string, handle: Handle) => app.post(path, handle).all(path, only("POST"));
  if (how.page) get("/", how.page);
  post("/runs", async (c) => await begin(c, await callerOf(c, how), await bodyOf(c, runBody, how.maxBody)));
  get("/runs/:id", (c) => followRun(c, served));
  post("/runs/:id/messages", (c) => sendMessage(c, served));
  post("/runs/:id/finish", (c) => finishRun(c, served));
  post("/runs/:id/stop", (c) => stopRun(c, served));
  get("/sessions/:id", (c) => showSession(c, served));
  post("/sessions/:id/answers", async (c) => {
    const session = c.req.param("id") ?? "";
    const caller = await callerOf(c, how);
    return await answer(c, caller, { session, ...await bodyOf(c, answersBody, how.maxBody) });
  });
  post("/sessions/:id/compact", compact);
  get("/health", (c) => {
    if (how.signal?.aborted) throw shutdown();
    return c.json({ status: "ok" });
  });

  return app
    .onError((error, c) => refuse(error, c, how.onError))
    .notFound(() => {
      throw new Refusal(404, "unknown", "Cannot serve this path: there is none");
    });
}

type Handle = (c: Context) => Response | Promise<Response>;

/** Answers every other method. */
function only(methods: string): (c: Context) => never {
  return (c) => {
    c.header("allow", methods);
    throw new Refusal(405, "method", `Cannot ${c.req.method} here: only ${methods}`);
  };
}
