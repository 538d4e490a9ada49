/**
 * Operations on a run while it continues, in this process or in another: a message, finish, and stop.
 *
 * @module
 */
import { TooManyMessagesError } from "../../core/features/steering.ts";
import { runOf } from "../../session/record/run_state.ts";
import type { OperationOf } from "../parse/operation.ts";
import { RequestError } from "../respond/error_response.ts";
import type { RequestScope } from "../server.ts";

/** Sends a message to a run. */
export async function handleMessage(
  { c, server: { runs }, client }: RequestScope,
  { run, message }: OperationOf<"message">,
): Promise<Response> {
  const live = runs.get(run, client);
  const sent = live
    ? await live.send(message.message, message).then(() => true, falseIfFull)
    : await runs.records?.send(run, message, client);
  if (sent === undefined) throw notRunning("send a message to", run);
  if (!sent) throw new RequestError(409, "full", `Cannot send a message to run "${run}": too many wait`);
  return c.body(null, 202);
}

/** Asks a run to answer once more, without tools, and to end. */
export async function handleFinish(
  { c, server: { runs }, client }: RequestScope,
  { run }: OperationOf<"finish">,
): Promise<Response> {
  const live = runs.get(run, client);
  live?.finish();
  if (!live && !await runs.records?.send(run, { type: "finish" }, client)) throw notRunning("finish", run);
  return c.body(null, 204);
}

/** Stops a run. With a log, the run may be paused or executed by another process; a run that has ended counts as stopped. */
export async function handleStop(
  { c, server: { runs }, client }: RequestScope,
  { run, rollback }: OperationOf<"stop">,
): Promise<Response> {
  const live = runs.get(run, client);
  live?.stop("stop", { rollback });
  if (!live && !await runs.records?.stop(run, client, rollback)) throw notRunning("stop", run);
  return c.body(null, 204);
}

/** Stops the run that has a session, if there is one. */
export async function handleStopSession(
  { c, server: { runs }, client }: RequestScope,
  { session }: OperationOf<"stopSession">,
): Promise<Response> {
  const run = runOf(await runs.load(session, client));
  const live = run === undefined ? undefined : runs.get(run, client);
  live?.stop();
  if (run !== undefined && !live) await runs.records?.stop(run, client);
  return c.body(null, 204);
}

/** Returns false for the error of a run that has too many messages. */
function falseIfFull(error: unknown): false {
  if (error instanceof TooManyMessagesError) return false;
  throw error;
}

function notRunning(action: string, run: string): RequestError {
  return new RequestError(404, "unknown", `Cannot ${action} run "${run}": it does not run`);
}
