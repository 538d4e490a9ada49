/**
 * The stored state of runs, for tests. No other test of sessions and servers reads the run record of a session.
 *
 * @module
 */
import type { Session } from "../../mod.ts";

/** The id of the run that has a session, and whether it is running or paused. */
export function storedRun(session: Session | undefined) {
  return session?.run && { id: session.run.id, status: session.run.status };
}

/** Why the run is being stopped, if it is. */
export function storedReason(session: Session | undefined): string | undefined {
  return session?.run?.closing;
}

/** How many messages and requests other processes have saved for the run. */
export function storedMail(session: Session | undefined): number {
  return session?.run?.mail?.length ?? 0;
}

/** The progress of the run that a save contains: its turns, and the status of each raw result; "end" without a run. */
export function storedProgress({ run }: Session): string {
  const raw = run?.pending?.batch?.started?.map(({ raw }) => raw?.status) ?? "";
  return run ? `${run.used.turns} ${raw}` : "end";
}

/** The same session with its run in this status. */
export function inStatus(session: Session, status: "running" | "paused"): Session {
  return session.run ? { ...session, run: { ...session.run, status } } : session;
}
