/**
 * What begins a run, and what it goes on with.
 *
 * @module
 */
import type { Context } from "hono";
import { answersBody, bodyOf, runBody } from "./body.ts";
import { callerOf } from "./caller.ts";
import { unknown } from "./refusal.ts";
import { type Served, streamRun } from "./served.ts";

/** Begins a run, in a new session or one that is there. */
export async function beginRun(c: Context, served: Served): Promise<Response> {
  const { how, runs } = served;
  const caller = await callerOf(c, how);
  const body = await bodyOf(c, runBody, how.maxBody);
  const { session = crypto.randomUUID() } = body;
  if (body.session !== undefined && !await runs.load(session, caller)) throw unknown(`run session "${session}"`);
  return await streamRun(c, served, caller, { run: crypto.randomUUID(), ...body, session });
}

/** Goes on with a run that waits for a person. */
export async function answerRun(c: Context, served: Served): Promise<Response> {
  const { how, runs } = served;
  const caller = await callerOf(c, how);
  const { answers } = await bodyOf(c, answersBody, how.maxBody);
  const session = c.req.param("id") ?? "";
  const kept = await runs.load(session, caller);
  if (!kept) throw unknown(`resume session "${session}"`);
  const after = await runs.records?.catchUp(kept, caller);
  const run = kept.run?.id ?? crypto.randomUUID();
  return await streamRun(c, served, caller, { run, session, answers, ...(after !== undefined && { after }) });
}
