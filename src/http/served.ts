/**
 * What the routes of a served agent share: a run, or what is on record of one, becomes the response to a request.
 *
 * @module
 */
import type { Context } from "hono";
import type { Given, LiveRun } from "../session/record/host.ts";
import type { LogPage } from "../session/log.ts";
import type { Caller } from "./caller.ts";
import type { ClientGone, Settled } from "./options.ts";
import { type Form, native } from "./form.ts";
import { report } from "./refusal.ts";
import type { Runs } from "./runs.ts";
import { headers } from "./stream.ts";

/** A served agent. */
export interface Served {
  readonly how: Settled;
  readonly runs: Runs;
}

const leave: { readonly [key in ClientGone]: (run: LiveRun) => void } = {
  stop: (run) => run.stop("client-gone"),
  drain: (run) => run.drain("client-gone"),
  detach: () => {},
};

/** Answers with the events of a run, which begins with that, or goes on. */
export async function streamRun(
  c: Context,
  { runs, how: { heartbeat, onClientGone } }: Served,
  caller: Caller,
  given: Given,
  form: Form = native,
): Promise<Response> {
  const onGone = typeof onClientGone === "function" ? await onClientGone(c) : onClientGone;
  const { out, respond } = form(c, { heartbeat, onCancel: () => leave[onGone](run) });
  const run = await runs.launch(given, caller, out).catch((error) => {
    out.close();
    throw error;
  });
  if (onGone !== "stop") caller.outlive(run.over);
  return await respond();
}

/** Answers with what is on record, and with whatever comes then; nothing where that is all. Whoever leaves that leaves the run alone. */
export async function streamRecord(
  c: Context,
  { how: { heartbeat, onError } }: Served,
  follow: (leaving: AbortSignal) => Promise<AsyncIterable<LogPage> | undefined>,
  form: Form = native,
): Promise<Response> {
  const leaving = new AbortController();
  const pages = await follow(leaving.signal);
  if (!pages) return c.body(null, 204);
  if (c.req.method === "HEAD") return c.body(null, 200, headers);
  const { out, respond } = form(c, { heartbeat, onCancel: () => leaving.abort() });

  async function send(pages: AsyncIterable<LogPage>): Promise<void> {
    try {
      for await (const page of pages) {
        out.write(page);
        await out.full;
      }
    } catch (error) {
      report(onError, error);
    } finally {
      out.close();
    }
  }
  send(pages); // it never rejects
  return await respond();
}
