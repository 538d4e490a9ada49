/**
 * Wires over HTTP: the routes of client dialects lead to the same runs as the native ones.
 *
 * @module
 */
import type { Context } from "hono";
import { SessionError } from "../core/claim.ts";
import type { Session } from "../protocol/session.ts";
import { theirs } from "../session/record/host.ts";
import { json } from "../protocol/shape.ts";
import type { ChatInput, ParsedRequest, PendingQuestions, WireRoute } from "../wire/wire.ts";
import type { Beginning } from "./begin.ts";
import { bodyOf } from "./body.ts";
import { type Caller, callerOf } from "./caller.ts";
import { formOf } from "./form.ts";
import { Refusal, refuse, unknown } from "./refusal.ts";
import { type Served, streamRecord } from "./served.ts";

/** Handles the requests of a route of a wire. */
export function speaking(
  { method, parse, encodeError }: WireRoute,
  served: Served,
  { begin, answer }: Pick<Beginning, "begin" | "answer">,
): (c: Context) => Promise<Response> {
  const { how, runs, runs: { records } } = served;

  async function talk(c: Context, caller: Caller, wanted: ChatInput): Promise<Response> {
    const { session, mustExist, resumeToken, input, reply } = wanted;
    const kept = await keptOf(wanted, caller);
    const said = input(pendingOf(kept));
    if ("messages" in said) {
      return await begin(c, caller, { ...said, session, anew: !mustExist }, formOf(reply));
    }
    if (kept && said.answers.length === 0) {
      throw new SessionError(`Cannot resume session "${session}": nothing that it asks is answered`, "unasked");
    }
    if (how.resumeTokens && resumeToken === undefined) {
      const why = "what came with the pause has not come back";
      throw new Refusal(400, "invalid", `Cannot resume session "${session}": ${why}`);
    }
    return await answer(c, caller, { ...said, resumeToken, session: session ?? "" }, formOf(reply));
  }

  async function keptOf({ session, resumeToken }: ChatInput, caller: Caller): Promise<Session | undefined> {
    if (session === undefined) return undefined;
    if (!how.resumeTokens || resumeToken === undefined) return await runs.load(session, caller);
    return theirs(await how.resumeTokens.open(resumeToken, { session }), caller);
  }

  async function follow(
    c: Context,
    caller: Caller,
    { session, reply }: ParsedRequest & { type: "follow" },
  ): Promise<Response> {
    const { run: now, last } = await runs.load(session, caller) ?? {};
    const run = now?.id ?? last?.run; // a client whose connection was cut may have missed the end
    if (!records || run === undefined) return c.body(null, 204);
    const place = { run, session, after: 0 };
    return await streamRecord(c, served, (leaving) => records.follow(place, caller, leaving), formOf(reply));
  }

  async function show(
    c: Context,
    caller: Caller,
    { session, body }: ParsedRequest & { type: "session" },
  ): Promise<Response> {
    const kept = await runs.load(session, caller);
    if (!kept) throw unknown(`show session "${session}"`);
    return c.json(body(kept));
  }

  async function stop(c: Context, caller: Caller, session: string): Promise<Response> {
    const { run } = await runs.load(session, caller) ?? {};
    const here = run && runs.get(run.id, caller);
    here?.stop();
    if (run && !here) await records?.stop(run.id, caller);
    return c.body(null, 204);
  }

  async function serve(c: Context): Promise<Response> {
    const caller = await callerOf(c, how);
    const body = method === "POST" ? await bodyOf(c, json, how.maxBody) : undefined;
    const session = how.session?.(c);
    const asked = parse({ params: c.req.param(), body, session });
    if (asked.type === "json") return c.json(asked.body);
    const meant = session === undefined ? asked : { ...asked, session };
    if (meant.type === "chat") return await talk(c, caller, meant);
    if (meant.type === "follow") return await follow(c, caller, meant);
    if (meant.type === "session") return await show(c, caller, meant);
    return await stop(c, caller, meant.session);
  }

  return (c) => serve(c).catch((error) => refuse(error, c, how.onError, encodeError));
}

function pendingOf({ run }: Partial<Session> = {}): PendingQuestions {
  const questions = run?.status === "paused" ? run.pending?.questions : undefined;
  return { questions: questions ?? [], pausedAt: run?.events ?? 0 };
}
