/**
 * Loading sessions whose pause has its final number.
 *
 * @module
 */
import { isPaused, type SessionHead } from "../../core/session.ts";
import type { Requester, RunHost } from "./run_host.ts";
import type { Records } from "./records.ts";
import { lastEventNumber } from "./run_state.ts";

/** The part of a server that loads sessions. */
export interface CaughtUpHost extends Pick<RunHost, "head"> {
  /** The records of runs, if the server has a log. */
  readonly records: Pick<Records, "catchUp"> | undefined;
}

/** Reads a session without its messages, and completes the record of its run before if the run is paused: the pause may receive a lower number then. */
export async function loadCaughtUp(
  { head, records }: CaughtUpHost,
  id: string,
  requester: Requester,
): Promise<SessionHead | undefined> {
  const session = await head(id, requester);
  if (!session || !isPaused(session) || !records) return session;
  const last = await records.catchUp(session, requester) ?? Infinity;
  return last < lastEventNumber(session) ? await head(id, requester) : session;
}
