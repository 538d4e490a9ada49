/**
 * Sessions to save: what the run has at a moment, and what is added when it is stored.
 *
 * @module
 */
import { type Lease, type Mail, mailedMessages, type Unsaved } from "../session.ts";
import type { WriterRun } from "./writer_run.ts";

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
  { closing, rollback, rolledBack }: WriterRun,
  leaseTime: number,
): Unsaved {
  if (!session.run) {
    const late = rolledBack ? [] : mailedMessages(arrived);
    return { ...session, messages: [...session.messages, ...late] };
  }
  const lease: Lease = {
    until: Math.ceil(Date.now() + (released ? 0 : leaseTime)),
    ...((released || session.lease?.released) && { released: true }),
    ...(closing !== undefined && { closing, ...(rollback && { rollback }) }),
  };
  return {
    ...session,
    ...(!session.run.exit && { lease }),
    ...(arrived.length > 0 && { mail: [...session.mail ?? [], ...arrived] }),
  };
}
