/**
 * Operations that start no run for their request: those that read, and those on a run while it continues.
 *
 * @module
 */
import { stops } from "../core/position.ts";
import { TooManyMessagesError } from "../core/steering.ts";
import { withRetries } from "../core/store.ts";
import { outsideMessage } from "./client_parts.ts";
import { notFound, reportError, RequestError } from "./error_response.ts";
import type { Operation, OperationOf, OperationTable, RequestScope, StartOperation } from "./operation.ts";
import { respondFromRecord } from "./respond.ts";
import { RecordError } from "../session/record/records.ts";
import type { LiveRun, RunAddress } from "../session/record/run_host.ts";
import { latestRunOf, runOf } from "../session/record/run_state.ts";

// Operations on what is stored: the events of a run, a session, and the static JSON of wires.

/** Responds with the events of a run that the client has not received. */
async function handleFollow(
  scope: RequestScope,
  { run, after, format }: OperationOf<"follow">,
): Promise<Response> {
  return await respondFromRecord(scope, { run, after }, format);
}

/**
 * Responds with the events of the latest run of a session. A client that reconnects may have missed the end of the run. Once the events of a run that is over have
 * been deleted, there is nothing to reconnect to.
 */
async function handleFollowSession(
  scope: RequestScope,
  { session, format }: OperationOf<"followSession">,
): Promise<Response> {
  const { c, server, client } = scope;
  const stored = await server.runs.head(session, client);
  const run = latestRunOf(stored);
  if (!server.runs.records || run === undefined) return c.body(null, 204);
  try {
    return await respondFromRecord(scope, { run, session, after: 0 }, format);
  } catch (error) {
    const isDeleted = error instanceof RecordError && error.code === "forgotten" && runOf(stored) === undefined;
    if (isDeleted) return c.body(null, 204);
    throw error;
  }
}

/** Responds with a session. */
async function handleShow(
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

/** Deletes a session. One that does not exist counts as deleted. */
async function handleDelete(
  { c, server, client }: RequestScope,
  { session }: OperationOf<"delete">,
): Promise<Response> {
  await server.runs.delete(session, client);
  return c.body(null, 204);
}

/** Responds with the body that a wire has made. */
function handleJson({ c }: RequestScope, { body, status = 200 }: OperationOf<"json">): Response {
  return body ? c.json(body, status) : c.body(null, status);
}

// Operations on a run while it continues, in this process or in another: a message, finish, and stop.

/** Sends a message to a run. */
async function handleMessage(scope: RequestScope, operation: OperationOf<"message">): Promise<Response> {
  const { run, message } = operation;
  const sent = await controlOf(scope, operation).send({ ...message, message: outsideMessage(message.message) });
  if (sent === undefined) throw notRunning("send a message to", run);
  if (!sent) throw new RequestError(409, "full", `Cannot send a message to run "${run}": too many wait`);
  return scope.c.body(null, 202);
}

/** Asks a run to answer once more, without tools, and to end. */
async function handleFinish(scope: RequestScope, operation: OperationOf<"finish">): Promise<Response> {
  if (!await controlOf(scope, operation).finish()) throw notRunning("finish", operation.run);
  return scope.c.body(null, 204);
}

/** Stops a run, which may be paused or executed by another process. If the server keeps events, a run that has ended counts as stopped. */
async function handleStop(scope: RequestScope, operation: OperationOf<"stop">): Promise<Response> {
  if (!await controlOf(scope, operation).stop(operation.rollback)) throw notRunning("stop", operation.run);
  return scope.c.body(null, 204);
}

/** Stops the run that has a session, if there is one. */
async function handleStopSession(
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

/** Returns the control of a run, which this process executes, or another one that shares its store. */
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
      runs.track(
        ended.catch((error) =>
          void reportError(onError, error, { ...run, session: live.session, owner: client.owner })
        ),
        client,
      );
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

/** The functions for these operations. They handle an operation, and respond. */
export const handlers: OperationTable<Exclude<Operation, StartOperation>["type"], Response> = {
  follow: handleFollow,
  followSession: handleFollowSession,
  show: handleShow,
  delete: handleDelete,
  json: handleJson,
  message: handleMessage,
  finish: handleFinish,
  stop: handleStop,
  stopSession: handleStopSession,
};
