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
import { dispatch, type Operation, type RequestScope, type Route, type Server } from "./operation.ts";
import { type ClientGone, expectClientGone } from "./options.ts";
import type { Turn } from "./queue.ts";
import { accepted, type Launched, prefersAsync, respondJoined, type ResponseFormat } from "./respond.ts";
import type { ClaimedKey } from "../session/record/idempotency_keys.ts";
import type { LaunchInput, LiveRun } from "../session/record/run_host.ts";

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

    // 4. Claim the idempotency key. A repeated request joins the run of the first one.
    const key = await server.idempotency.claim(scope, start);
    if (key.status === "repeated") return await respondJoined(scope, key.cursor, format);

    let launched: Launched;
    try {
      // 5. Wait in turn, behind the other prompts of the session.
      const turn = await server.queue.enter(start, key.session, client);
      // 6. Launch the run.
      launched = await launchInTurn(scope, { start, key, turn, format });
    } catch (error) {
      const cursor = await key.release(error, isRefusal(error));
      if (!cursor) throw error;
      return await respondJoined(scope, cursor, format); // the run of the same request has begun meanwhile
    }
    key.keep(launched.run);
    endWait(); // the run counts by itself from here on

    // 7. Respond.
    return await launched.respond();
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

// The launch of a run for a client that waits for its events, or in the background.

/** A start that has its key and its turn. */
interface ReadyStart {
  readonly start: AdmittedStart;
  readonly key: ClaimedKey;
  readonly turn: Turn;
  readonly format: ResponseFormat;
}

/** Launches a run, and tries again each time that a run which has the session is over. */
async function launchInTurn(scope: RequestScope, { start, key, turn, format }: ReadyStart): Promise<Launched> {
  let busy: "replace" | undefined;
  try {
    for (;;) {
      try {
        const traceparent = scope.c.req.header("traceparent");
        return await launchForClient(scope, { ...await start.input(key), busy, traceparent }, format);
      } catch (error) {
        if (await scope.server.runs.releasesLost(error, key.session, scope.client)) continue;
        busy = await turn.waitAfter(error);
      }
    }
  } finally {
    turn.end();
  }
}

const onGone: { readonly [key in ClientGone]: (run: LiveRun) => unknown } = {
  stop: (run) => run.abort(stops.clientGone),
  drain: (run) => run.drain(stops.clientGone.reason),
  detach: () => {},
};

/**
 * Launches a run for a client. Its response is in `format`. A client that prefers not to wait receives the address of the run instead. `onCancel` stays as long
 * as the stream, so that no closure in this function may use the request.
 */
async function launchForClient(scope: RequestScope, input: LaunchInput, format: ResponseFormat): Promise<Launched> {
  const { c, server: { runs, streams, options: { heartbeat, onClientGone } }, client } = scope;
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
