/**
 * Hand-over: a process that shuts down gives its runs to other processes.
 *
 * @module
 */
import { promiseTry } from "../../../stream/tick.ts";
import type { EngineRun } from "../../run/run.ts";
import { savedSession } from "../saved_session.ts";
import type { Unsaved } from "../session.ts";

/** Saves a session for another process to continue its run, and ends the lease. */
type Release = (session: Unsaved) => Promise<unknown>;

/**
 * Hands a run over. At the next safe place, or after `grace` milliseconds, its state is saved without its lease, and this process does nothing more for it.
 */
export function handOver(run: EngineRun, release: Release, grace: number): void {
  const { control, loop, exit, events } = run;
  const releaseOnce = () => {
    const ends = control.aborted || events.closed || loop.detached || exit.current !== undefined;
    if (!ends) releaseNow(run, release);
  };
  control.releaseAfter(grace, releaseOnce);
  loop.stopAtSafePlace(releaseOnce);
}

/** Saves the state as it is now, and stops the work: no later event, move or save has an effect. If the state cannot be saved, the run counts as lost. */
function releaseNow(run: EngineRun, release: Release): void {
  const { events, loop, control, writer } = run;
  const saved = promiseTry(() => release(frozenSession(run))); // it throws if a hook has put a value into the state that is not JSON
  events.mute();
  loop.detach();
  const failed = (error: unknown) => {
    writer.close?.();
    events.report(error);
  };
  // clients reconnect when their streams close, and then find the run without its lease
  control.abort("shutdown", { handOver: saved.catch(failed).then(() => run.close()) });
}

/** Returns the session with a copy of its head, since hooks that unwind may change its state. It notes whether clients have seen a part of an answer: the next process takes it back. */
function frozenSession(run: EngineRun): Unsaved {
  const { messages, ...head } = savedSession(run);
  const session: Unsaved = { ...JSON.parse(JSON.stringify(head)), messages };
  const { run: saved } = session;
  if (run.work.partial === undefined || saved?.position.at !== "model") return session;
  return { ...session, run: { ...saved, position: { ...saved.position, shown: true } } };
}
