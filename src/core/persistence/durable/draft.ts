/**
 * Sessions to save: what the run has at a moment, and what is added when it is stored.
 *
 * @module
 */
import { reasonOf } from "../../lib/cancellation.ts";
import type { EngineRun } from "../../run/run.ts";
import { restoredSession } from "../saved_session.ts";
import { type Lease, type Mail, mailedMessages, type Unsaved } from "../session.ts";

/** A session to save. */
export interface Draft {
  readonly session: Unsaved;
  /** The messages from other processes that have arrived since it was read. */
  readonly arrived: Mail[];
  /** True if the lease ends with it: another process continues the run. */
  readonly released: boolean;
}

/** Returns the session of a draft as it is stored: with the messages that arrived meanwhile and, if the run goes on, a lease of `leaseTime` milliseconds. */
export function sessionToStore(
  { session, arrived, released }: Draft,
  run: EngineRun,
  leaseTime: number,
): Unsaved {
  if (!session.run) {
    const late = run.loop.transcript.rolledBack ? [] : mailedMessages(arrived);
    return { ...session, messages: [...session.messages, ...late] };
  }
  const closing = closingOf(run);
  const lease: Lease = {
    until: Math.ceil(Date.now() + (released ? 0 : leaseTime)),
    ...((released || session.lease?.released) && { released: true }),
    ...(closing !== undefined && { closing, ...(run.control.stop.rollback && { rollback: true }) }),
  };
  return {
    ...session,
    ...(!session.run.exit && { lease }),
    ...(arrived.length > 0 && { mail: [...session.mail ?? [], ...arrived] }),
  };
}

/** Returns the reason why a run is being stopped, if it is: a process that takes over ends the run for the same reason. */
export function closingOf(run: EngineRun): string | undefined {
  const { control, claimed, exit } = run;
  const stops = control.aborted && !control.stop.handOver && !restoredSession(run);
  return stops && exit.current?.status !== "failed" ? reasonOf(control.reason) : claimed.closing;
}
