/**
 * The request path: every route, native or of a wire, takes the same seven steps. See README.md in this folder.
 *
 * @module
 */
import type { Context } from "hono";
import type { ErrorPlace } from "../core/events.ts";
import { stops } from "../core/position.ts";
import { admissions, type AdmittedStart, startsRun } from "./admission.ts";
import { errorResponse, isRefusal, RequestError, shuttingDown } from "./error_response.ts";
import { handlers } from "./handlers.ts";
import { type Client, expectIds, identify } from "./identify.ts";
import { dispatch, type Operation, type RequestScope, type Route, type Server, type StartScope } from "./operation.ts";
import { type ClientGone, expectClientGone } from "./options.ts";
import type { SentKey, Turn } from "./queue.ts";
import { accepted, type Launched, prefersAsync, respondJoined, type ResponseFormat } from "./respond.ts";
import type { EventCursor, LaunchInput, LiveRun } from "../session/record/run_host.ts";

/** Returns the handler of a route. The error of a step becomes the response. */
export function requestPath(route: Route, server: Server): (c: Context) => Promise<Response> {
  return async function handleRequest(c) {
    // 1. Parse.
    const operation = await parse(c, route);
    let client: Client | undefined;
    try {
      // 2. Identify. A client that is not identified learns nothing else, so the error of a request that cannot be read is thrown here.
      client = await identify(c, server.options);
      if (server.options.signal?.aborted) throw shuttingDown();
      if (operation.type === "unreadable") throw operation.error;
      return await takeSteps({ c, server, client }, operation);
    } catch (error) {
      const { run, session }: ErrorPlace = operation.type === "unreadable"
        ? {}
        : { run: undefined, session: undefined, ...operation };
      return errorResponse(error, c, server.options, { route, place: { run, session, owner: client?.owner } });
    }
  };
}

/** Takes the steps of a request after it was identified. A step that refuses the request throws. */
async function takeSteps(scope: RequestScope, operation: Operation): Promise<Response> {
  const { c, server, client } = scope;
  expectIds(operation, client);
  if (!startsRun(operation)) return await dispatch(handlers, scope, operation);

  // 3. Admit, if the process has room.
  const { format } = operation;
  const endWait = server.admissions.admit(!prefersAsync(c, format));
  try {
    const start = await dispatch(admissions, scope, operation);

    // 4 to 6. Claim the idempotency key, wait in turn, and launch the run, unless the same request has begun it before.
    const sent = { key: c.req.header("idempotency-key"), path: c.req.path };
    const outcome = await startOnce({ ...scope, format }, start, { sent, launch: launchForClient });
    if (outcome.status === "repeated") return await respondJoined(scope, outcome.cursor, format);
    endWait(); // the run counts by itself from here on

    // 7. Respond.
    return await outcome.launched.respond();
  } finally {
    endWait();
  }
}

/** A request that cannot be read. */
interface Unreadable {
  readonly type: "unreadable";
  readonly error: unknown;
}

/** Parses a request. Never rejects. */
async function parse(c: Context, route: Route): Promise<Operation | Unreadable> {
  try {
    return await route.parse(c);
  } catch (error) {
    return { type: "unreadable", error };
  }
}

// Steps 4 to 6, which a schedule takes too.

/** The outcome of a start: the run that it has launched, or the place of the run that the same request has begun before. */
type StartOutcome<T> =
  | { readonly status: "launched"; readonly launched: T }
  | { readonly status: "repeated"; readonly cursor: EventCursor };

/** The key of a start, and the function that launches its run. */
interface LaunchOptions<S, T> {
  readonly sent: SentKey;
  readonly launch: (scope: S, input: LaunchInput) => Promise<T>;
}

/** Starts a run, once for all requests with the same key. Tries again each time that a run which has the session is over. */
export async function startOnce<S extends StartScope, T extends { readonly run: LiveRun }>(
  scope: S,
  start: AdmittedStart,
  { sent, launch }: LaunchOptions<S, T>,
): Promise<StartOutcome<T>> {
  const { server: { idempotency, queue, runs }, client } = scope;
  // 4. Claim the idempotency key. A repeated request joins the run of the first one.
  const key = await idempotency.claim(client, start, sent);
  if (key.status === "repeated") return key;

  let turn: Turn | undefined;
  try {
    // 5. Wait in turn, behind the other prompts of the session.
    turn = await queue.enter(start, key.session, client);
    // 6. Launch the run.
    for (let busy: "replace" | undefined;;) {
      try {
        const launched = await launch(scope, { ...await start.input(key), busy });
        key.keep(launched.run);
        return { status: "launched", launched };
      } catch (error) {
        if (await runs.releasesLost(error, key.session, client)) continue;
        busy = await turn.waitAfter(error);
      }
    }
  } catch (error) {
    const cursor = await key.release(error, isRefusal(error));
    if (!cursor) throw error;
    return { status: "repeated", cursor }; // the run of the same request has begun meanwhile
  } finally {
    turn?.end();
  }
}

// The launch of a run for a client that waits for its events, or in the background.

const onGone: { readonly [key in ClientGone]: (run: LiveRun) => unknown } = {
  stop: (run) => run.abort(stops.clientGone),
  drain: (run) => run.drain(stops.clientGone.reason),
  detach: () => {},
};

/** A request that starts a run, and the format of its response. */
interface LaunchScope extends RequestScope {
  readonly format: ResponseFormat;
}

/**
 * Launches a run for a client. Its response is in `format`. A client that prefers not to wait receives the address of the run instead. `onCancel` stays as long
 * as the stream, so that no closure in this function may use the request.
 */
async function launchForClient(scope: LaunchScope, untraced: LaunchInput): Promise<Launched> {
  const { c, server: { runs, streams, options: { heartbeat, onClientGone } }, client, format } = scope;
  const input = { ...untraced, traceparent: c.req.header("traceparent") };
  if (prefersAsync(c, format)) return await launchInBackground(scope, input);
  const effect = typeof onClientGone === "function" ? expectClientGone(await onClientGone(c)) : onClientGone;
  const onCancel = () => onGone[effect](run); // no client can leave before `respond`, which follows the launch
  const { out, respond } = format(c, { heartbeat, onCancel, onEnd: streams.open() });
  const run = await runs.launch(input, client, out);
  client.onLeave(() => onGone[effect](run));
  return { run, respond };
}

/** Launches a run whose client does not wait for it. */
async function launchInBackground(
  { c, server: { runs }, client }: RequestScope,
  input: LaunchInput,
): Promise<Launched> {
  if (!runs.records) {
    const expected = "the server keeps neither sessions nor events; expected a `store`";
    throw new RequestError(400, "invalid", `Cannot run in the background: ${expected}`, "prefer");
  }
  const run = await runs.launch(input, client);
  return { run, respond: () => accepted(c, { run: run.id, session: run.session }) };
}
