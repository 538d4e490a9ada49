/**
 * The stored state of runs, for tests. No other test of sessions and servers reads the run record of a session.
 *
 * @module
 */
import type { Session } from "../../mod.ts";

/** The id of the run that has a session, and whether it is running or paused. */
export function storedRun(session: Session | undefined) {
  return session?.run && { id: session.run.id, status: session.run.exit ? "paused" : "running" };
}

/** The reason for which the run is being stopped, if it is. */
export function storedReason(session: Session | undefined): string | undefined {
  return session?.lease?.closing;
}

/** The number of messages and requests that other processes have saved for the run. */
export function storedMail(session: Session | undefined): number {
  return session?.mail?.length ?? 0;
}

/** The progress of the run that a save contains: its position, and the state of each call; "end" without a run. */
export function storedProgress({ run }: Session): string {
  if (!run) return "end";
  const { position } = run;
  return position.at === "tools" ? `tools ${position.calls.map(({ state }) => state)}` : position.at;
}

/** The same session with its run in this status. */
export function inStatus(session: Session, status: "running" | "paused"): Session {
  const { run } = session;
  if (!run) return session;
  const { exit, ...rest } = run;
  return {
    ...session,
    run: status === "paused" ? { ...rest, exit: exit ?? { status: "paused", questions: [] } } : rest,
  };
}
