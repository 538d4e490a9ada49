/**
 * What is known already: the rest of a run, its end, a session.
 *
 * @module
 */
import type { Context } from "hono";
import { callerOf, idOf } from "./caller.ts";
import { Refusal, unknown } from "./refusal.ts";
import { type Served, streamRecord } from "./served.ts";

/** Answers with what a client has not heard of a run. */
export async function followRun(c: Context, served: Served): Promise<Response> {
  const { how, runs: { records } } = served;
  const caller = await callerOf(c, how);
  const run = idOf(c.req.param("id"));
  const after = positionOf(c);
  if (!records) throw unknown(`follow run "${run}"`);
  return await streamRecord(c, served, (leaving) => records.follow({ run, after }, caller, leaving));
}

/** The number of the last event that a client has heard. */
function positionOf({ req }: Context): number {
  const header = req.header("last-event-id");
  const given = header ?? req.query("after") ?? "0";
  const after = Number(given);
  if (/^\d+$/.test(given) && Number.isSafeInteger(after)) return after;
  const field = header === undefined ? "after" : "last-event-id";
  throw new Refusal(400, "invalid", `Cannot read ${field}: expected the number of an event`, field);
}

/** Answers with a session, for a page that has nothing of it. */
export async function showSession(c: Context, { how, runs }: Served): Promise<Response> {
  const caller = await callerOf(c, how);
  const id = c.req.param("id") ?? "";
  const session = await runs.load(id, caller);
  if (!session) throw unknown(`show session "${id}"`);
  const { messages, run } = session;
  const now = run && { run: { id: run.id, status: run.status, questions: run.pending?.questions ?? [] } };
  return c.json({ id, messages, ...now });
}
