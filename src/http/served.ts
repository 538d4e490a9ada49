/**
 * What the routes of a served agent share: a run, or what is on record of one, becomes the response to a request.
 *
 * @module
 */
import type { Context } from "hono";
import type { LogPage } from "../session/log.ts";
import type { Caller } from "./caller.ts";
import type { ClientGone, Settled } from "./options.ts";
import type { Records } from "./records.ts";
import { report } from "./refusal.ts";
import { replayed } from "./replay.ts";
import type { Given, LiveRun, Runs } from "./runs.ts";
import { headers, outlet } from "./stream.ts";

/** A served agent. */
export interface Served {
  readonly how: Settled;
  readonly runs: Runs;
  /** Nothing where no record is kept. */
  readonly records: Records | undefined;
}

const leave: { readonly [key in ClientGone]: (run: LiveRun) => void } = {
  stop: (run) => run.stop("client-gone"),
  drain: (run) => run.drain("client-gone"),
  detach: () => {},
};

/** Answers with the events of a run, which begins with that, or goes on. */
export async function streamRun(
  c: Context,
  { runs, how: { heartbeat } }: Served,
  caller: Caller,
  given: Given,
): Promise<Response> {
  const { onGone } = caller;
  const { out, stream } = outlet({ heartbeat, onCancel: () => leave[onGone](run) });
  const run = await runs.launch(given, caller, out).catch((error) => {
    out.close();
    throw error;
  });
  if (onGone !== "stop") caller.outlive(run.over);
  return c.body(stream, 200, headers);
}

/** Answers with what comes after an event, as it is on record, and with whatever comes then. Whoever leaves that leaves the run alone. */
export function streamRecord(
  c: Context,
  { how: { heartbeat, onError } }: Served,
  pages: (leaving: AbortSignal) => AsyncIterable<LogPage>,
): Response {
  if (c.req.method === "HEAD") return c.body(null, 200, headers);
  const leaving = new AbortController();
  const stream = replayed(pages(leaving.signal), {
    heartbeat,
    onCancel: () => leaving.abort(),
    onError: (error) => report(onError, error),
  });
  return c.body(stream, 200, headers);
}
