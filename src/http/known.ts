/**
 * What is known already: the rest of a run, its end, a session.
 *
 * @module
 */
import type { Context } from "hono";
import type { LogPage } from "../session/log.ts";
import { callerOf, sessionFor } from "./caller.ts";
import { Refusal, unknown } from "./refusal.ts";
import { type Served, streamRecord } from "./served.ts";

/** Answers with what a client has not heard of a run. */
export async function followRun(c: Context, served: Served): Promise<Response> {
  const { how, records } = served;
  const caller = await callerOf(c, how);
  const run = c.req.param("id") ?? "";
  const after = positionOf(c);
  const page = isId(run) ? await records?.read(run, caller, after) : undefined;
  if (!records || !page) throw unknown(`follow run "${run}"`);
  const named = `run "${run}" after event ${after}`;
  if (after > page.last) throw new Refusal(409, "ahead", `Cannot follow ${named}: the last is ${page.last}`);
  if (page.first > after + 1) {
    throw new Refusal(410, "forgotten", `Cannot follow ${named}: what comes next is forgotten`);
  }
  if (page.ended && after === page.last) return c.body(null, 204);
  if (!page.ended) await records.mend(run, caller);
  return streamRecord(c, served, (leaving) => from(page, (at) => records.follow(run, caller, at, leaving)));
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

/** Whether a record may be of that name: keys and owners have other characters. */
function isId(run: string): boolean {
  return /^[\w-]+$/.test(run);
}

/** A page that was read, and what `more` gives after it. */
async function* from(page: LogPage, more: (after: number) => AsyncIterable<LogPage>): AsyncGenerator<LogPage> {
  const { first, lines, last, ended } = page;
  if (lines.length > 0) yield page;
  const at = first + lines.length - 1;
  if (at < last || !ended) yield* more(at);
}

/** Stops a run, wherever it runs. One that waits for a person ends, too; one that has ended is stopped already. */
export async function stopRun(c: Context, { how, runs, records }: Served): Promise<Response> {
  const caller = await callerOf(c, how);
  const run = c.req.param("id") ?? "";
  const here = runs.get(run, caller);
  here?.stop();
  if (!here) {
    const record = isId(run) ? await records?.end(run, caller) : undefined;
    if (!records || !record) throw new Refusal(404, "unknown", `Cannot stop run "${run}": it does not run`);
    const session = await records.sessionOf(run, caller);
    const kept = session === undefined ? undefined : await sessionFor(caller, how, session);
    if (kept?.run?.id === run) await records.close(run, kept.id, "stop", caller);
    else if (!record.ended) await records.mend(run, caller);
  }
  return c.body(null, 204);
}

/** Answers with a session, for a page that has nothing of it. */
export async function showSession(c: Context, { how }: Served): Promise<Response> {
  const caller = await callerOf(c, how);
  const id = c.req.param("id") ?? "";
  const kept = await sessionFor(caller, how, id);
  if (!kept) throw unknown(`show session "${id}"`);
  const { messages, run } = kept;
  return c.json({
    id,
    messages,
    ...(run && { run: { id: run.id, status: run.status, questions: run.pending?.questions ?? [] } }),
  });
}
