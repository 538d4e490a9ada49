/**
 * One function for each operation of the request path: those that read, those on a run while it works, and those that launch a run.
 *
 * @module
 */
import type { Context } from "hono";
import { stops } from "../core/position.ts";
import { TooManyMessagesError } from "../core/steering.ts";
import { withRetries } from "../core/store.ts";
import { admitAnswers, admitChat, admitCompaction, admitPrompt, admitResume } from "./admission.ts";
import { outsideMessage } from "./client_parts.ts";
import { notFound, reportError, RequestError } from "./error_response.ts";
import { type ClientGone, expectClientGone } from "./options.ts";
import type { RepeatableActions, RepeatableRequest } from "./queue.ts";
import type { AnswersOperation, ChatOperation, OperationOf, PromptOperation, RequestScope } from "./request.ts";
import {
  accepted,
  type Launched,
  prefersAsync,
  respondFromRecord,
  respondJoined,
  type ResponseFormat,
} from "./respond.ts";
import type { EventCursor, LaunchInput, LiveRun, RunAddress } from "../session/record/run_host.ts";
import { latestRunOf, runOf } from "../session/record/run_state.ts";

// Operations that read: the events of a run, a session, and the static JSON of wires.

/** Responds with the events of a run that the client has not received. */
export async function handleFollow(
  scope: RequestScope,
  { run, after, format }: OperationOf<"follow">,
): Promise<Response> {
  return await respondFromRecord(scope, { run, after }, format);
}

/** Responds with the events of the latest run of a session. A client that reconnects may have missed the end of the run. */
export async function handleFollowSession(
  scope: RequestScope,
  { session, format }: OperationOf<"followSession">,
): Promise<Response> {
  const { c, server, client } = scope;
  const run = latestRunOf(await server.runs.head(session, client));
  if (!server.runs.records || run === undefined) return c.body(null, 204);
  return await respondFromRecord(scope, { run, session, after: 0 }, format);
}

/** Responds with a session. */
export async function handleShow(
  { c, server, client }: RequestScope,
  { session: id, body, page }: OperationOf<"show">,
): Promise<Response> {
  if (page) {
    const session = await server.runs.head(id, client);
    const history = session && await server.runs.history(id, client, page);
    if (!history) throw notFound(`show session "${id}"`);
    const { messages, before } = history;
    return c.json({ ...body({ ...session, messages }), ...(before !== undefined && { before }) });
  }
  const session = await server.runs.load(id, client);
  if (!session) throw notFound(`show session "${id}"`);
  return c.json(body(session));
}

/** Responds with static JSON. */
export function handleJson({ c }: RequestScope, { body }: OperationOf<"json">): Response {
  return c.json(body);
}

// Operations on a run while it continues, in this process or in another: a message, finish, and stop.

/** Sends a message to a run. */
export async function handleMessage(scope: RequestScope, operation: OperationOf<"message">): Promise<Response> {
  const { run, message } = operation;
  const sent = await controlOf(scope, operation).send({ ...message, message: outsideMessage(message.message) });
  if (sent === undefined) throw notRunning("send a message to", run);
  if (!sent) throw new RequestError(409, "full", `Cannot send a message to run "${run}": too many wait`);
  return scope.c.body(null, 202);
}

/** Asks a run to answer once more, without tools, and to end. */
export async function handleFinish(scope: RequestScope, operation: OperationOf<"finish">): Promise<Response> {
  if (!await controlOf(scope, operation).finish()) throw notRunning("finish", operation.run);
  return scope.c.body(null, 204);
}

/** Stops a run. With a log or the id of its session, the run may be paused or executed by another process. With a log, a run that has ended counts as stopped. */
export async function handleStop(scope: RequestScope, operation: OperationOf<"stop">): Promise<Response> {
  if (!await controlOf(scope, operation).stop(operation.rollback)) throw notRunning("stop", operation.run);
  return scope.c.body(null, 204);
}

/** Stops the run that has a session, if there is one. */
export async function handleStopSession(
  scope: RequestScope,
  { session }: OperationOf<"stopSession">,
): Promise<Response> {
  const { c, server, client } = scope;
  const run = runOf(await server.runs.head(session, client));
  if (run !== undefined) await controlOf(scope, { run, session }).stop();
  return c.body(null, 204);
}

/** Controls a run. Each function returns undefined or false if there is no such run. */
interface RunControl {
  /** Returns false if too many messages wait. */
  send(message: OperationOf<"message">["message"]): Promise<boolean | undefined>;
  finish(): Promise<boolean | undefined>;
  stop(rollback?: boolean): Promise<boolean | undefined>;
}

/** Returns the control of a run, which this process executes, or another one that shares its log. */
function controlOf(scope: RequestScope, run: RunAddress): RunControl {
  const { server: { runs, options: { onError } }, client } = scope;
  const { records } = runs;
  const live = runs.get(run.run, client);
  const remote: RunControl = {
    send: async (message) => await records?.send(run, message, client),
    finish: async () => await records?.send(run, { type: "finish" }, client),
    stop: async (rollback = false) =>
      await records?.stop(run, client, rollback) || await endStored(scope, run, rollback) !== undefined,
  };
  if (!live) return remote;
  return { // if it does not live after all, another process may continue it
    send: async (mail) =>
      await live.send(mail.message, mail.after && { after: mail.after }).catch(falseIfFull) ??
        await remote.send(mail),
    finish: async () => await live.finish() ?? await remote.finish(),
    async stop(rollback = false) {
      if (!await live.abort(stops.stop, { rollback })) return await remote.stop(rollback);
      const ended = endIfKept(scope, live, { run: run.run, session: live.session }, rollback);
      runs.track(ended.catch((error) => void reportError(onError, error, run.run)), client);
      return true;
    },
  };
}

/** Ends a run whose session still has it after its stop. It was saving its pause when it was stopped, its start was undone, or another process has it. */
async function endIfKept(scope: RequestScope, live: LiveRun, run: RunAddress, rollback: boolean): Promise<void> {
  await live.untilOver();
  await (await endStored(scope, run, rollback))?.untilOver();
}

/** Ends the run that its session has, and returns it while it ends. Returns undefined if the session is not named or has no such run. */
async function endStored(
  { server: { runs }, client }: RequestScope,
  { run, session = "" }: RunAddress,
  rollback: boolean,
): Promise<LiveRun | undefined> {
  return await withRetries(async () => { // the other process may save it at this moment
    if (runOf(await runs.head(session, client)) !== run) return undefined;
    const resumed = runs.get(run, client);
    await resumed?.abort(stops.stop, { rollback });
    const closing = { run, session, answers: [], stop: stops.stop, rollback, busy: "replace" } as const;
    return resumed ?? await runs.launch(closing, client);
  });
}

/** Returns false for the error of a run that has too many messages. */
function falseIfFull(error: unknown): false {
  if (error instanceof TooManyMessagesError) return false;
  throw error;
}

function notRunning(action: string, run: string): RequestError {
  return new RequestError(404, "unknown", `Cannot ${action} run "${run}": it does not run`);
}

// Operations that launch a run: a prompt, answers, a compaction, and a message of a wire's client.

/** Begins a run: waits for the session as the `busy` option says, admits the prompt, and launches the run. */
export function handlePrompt(scope: RequestScope, operation: PromptOperation): Promise<Response> {
  const { c, server, client } = scope;
  const { input, session, busy, format } = operation;
  const own = { run: crypto.randomUUID(), session: session ?? crypto.randomUUID(), after: 0 };
  const request = { ...identityOf(c, [session, input]), cursor: own };
  return respondOnce(scope, request, format, (cursor = own) =>
    server.inTurn({
      cursor,
      client,
      busy,
      async launch(mode) {
        const admitted = await admitPrompt(scope, operation, cursor);
        return await launchForClient(scope, { ...admitted, busy: mode }, format);
      },
    }));
}

/** Resumes a paused run with answers. With a log, a resume token is used once. */
export async function handleAnswers(scope: RequestScope, operation: AnswersOperation): Promise<Response> {
  const { answers, resumeToken, run: asking, at, format } = operation;
  const admitted = await admitAnswers(scope, operation);
  const { run, pausedAt, tokenSession, cursor } = admitted;
  const request = {
    ...identityOf(scope.c, [answers, resumeToken, asking, at]),
    ...(tokenSession && { key: `resumeToken:${run}:${pausedAt}` }),
    cursor,
  };
  return await respondOnce(scope, request, format, async (_, requestId) => {
    return await launchForClient(scope, await admitResume(scope, operation, admitted, requestId), format);
  });
}

/** Compacts the transcript of a session, in a run that does nothing else. */
export function handleCompaction(scope: RequestScope, operation: OperationOf<"compact">): Promise<Response> {
  const { session, instructions, format } = operation;
  const own = { run: crypto.randomUUID(), session, after: 0 };
  const request = { ...identityOf(scope.c, [session, instructions]), cursor: own };
  return respondOnce(scope, request, format, async (cursor = own) => {
    return await launchForClient(scope, await admitCompaction(scope, operation, cursor), format);
  });
}

/** Begins or resumes a run for a wire's client. */
export async function handleChat(scope: RequestScope, operation: ChatOperation): Promise<Response> {
  const admitted = await admitChat(scope, operation);
  return await (admitted.type === "prompt" ? handlePrompt(scope, admitted) : handleAnswers(scope, admitted));
}

/** Begins the run of a request, or joins the run that the same request has begun, and responds with its events. */
async function respondOnce(
  scope: RequestScope,
  request: RepeatableRequest,
  format: ResponseFormat,
  begin: RepeatableActions["begin"],
): Promise<Response> {
  const join = (cursor: EventCursor) => Promise.resolve({ respond: () => respondJoined(scope, cursor, format) });
  const { respond } = await scope.server.once(request, scope.client, { begin, join });
  return await respond();
}

/** Returns the content of a request, to compare it with others that have the same idempotency key. */
function identityOf({ req }: Context, body: readonly unknown[]) {
  return { header: req.header("idempotency-key"), content: [req.path, ...body] };
}

// The launch of a run for a client that waits for its events, or in the background.

const onCancel: { readonly [key in ClientGone]: (run: LiveRun) => unknown } = {
  stop: (run) => run.abort(stops.clientGone),
  drain: (run) => run.drain(stops.clientGone.reason),
  detach: () => {},
};

/** Launches a run for a client. Its response is in `format`. A client that prefers not to wait receives the address of the run instead. */
async function launchForClient(scope: RequestScope, input: LaunchInput, format: ResponseFormat): Promise<Launched> {
  const { c, server: { runs, options: { heartbeat, onClientGone } }, client } = scope;
  if (prefersAsync(c, format)) return await launchInBackground(scope, input);
  const onGone = typeof onClientGone === "function" ? expectClientGone(await onClientGone(c)) : onClientGone;
  const { out, respond } = format(c, { heartbeat, onCancel: () => onCancel[onGone](run) }); // no client can leave before `respond`, which follows the launch
  const run = await runs.launch(input, client, out);
  client.onLeave(() => onCancel[onGone](run));
  return { run, respond };
}

/** Launches a run whose client does not wait for it. */
async function launchInBackground(
  { c, server: { runs }, client }: RequestScope,
  input: LaunchInput,
): Promise<Launched> {
  if (!runs.hasStore && !runs.records) {
    const expected = "the server keeps neither sessions nor events; expected a `log`";
    throw new RequestError(400, "invalid", `Cannot run in the background: ${expected}`, "prefer");
  }
  const run = await runs.launch(input, client);
  return { run, respond: () => accepted(c, input, runs.records !== undefined) };
}
