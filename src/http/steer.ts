/**
 * What a client says to a run while it runs, or has it do.
 *
 * @module
 */
import type { Context } from "hono";
import { bodyOf, messageBody } from "./body.ts";
import { callerOf, idOf } from "./caller.ts";
import { Refusal } from "./refusal.ts";
import type { Served } from "./served.ts";

/** Says something to a run, wherever it runs. */
export async function sendMessage(c: Context, { how, runs }: Served): Promise<Response> {
  const caller = await callerOf(c, how);
  const id = idOf(c.req.param("id"));
  const mail = await bodyOf(c, messageBody, how.maxBody);
  const here = runs.get(id, caller);
  const sent = here
    ? await here.send(mail.message, mail).then(() => true, fullness)
    : await runs.records?.post(id, mail, caller);
  if (sent === undefined) throw over("send a message to", id);
  if (!sent) throw new Refusal(409, "full", `Cannot send a message to run "${id}": too many wait`);
  return c.body(null, 202);
}

/** Has a run end with one more answer, wherever it runs. */
export async function finishRun(c: Context, { how, runs }: Served): Promise<Response> {
  const caller = await callerOf(c, how);
  const id = idOf(c.req.param("id"));
  const here = runs.get(id, caller);
  here?.finish();
  if (!here && !await runs.records?.post(id, { type: "finish" }, caller)) throw over("finish", id);
  return c.body(null, 204);
}

/** Stops a run. Where it is on record, it may run elsewhere or wait for a person, and one that has ended is stopped already. */
export async function stopRun(c: Context, { how, runs }: Served): Promise<Response> {
  const caller = await callerOf(c, how);
  const id = idOf(c.req.param("id"));
  const here = runs.get(id, caller);
  here?.stop("stop", { rollback: c.req.query("rollback") !== undefined });
  if (!here && !await runs.records?.stop(id, caller)) throw over("stop", id);
  return c.body(null, 204);
}

/** False where too many messages wait. */
function fullness(error: unknown): false {
  if (error instanceof RangeError) return false;
  throw error;
}

function over(what: string, id: string): Refusal {
  return new Refusal(404, "unknown", `Cannot ${what} run "${id}": it does not run`);
}
