/**
 * Drafts: the sessions that the writer of a run saves, and how they are stored.
 *
 * @module
 */
import type { JournalProgress } from "./journal_writer.ts";
import type { Stop } from "./position.ts";
import type { EngineRun } from "./run.ts";
import { type Mail, mailedMessages, type Unsaved } from "./session.ts";
import { waitingCount } from "./steering.ts";
import type { Event } from "../protocol/event.ts";

/** A session to save, and what belongs to it. */
export interface Draft {
  readonly session: Unsaved;
  /** The number of the last entry whose mail the session contains. */
  readonly readUntil: number;
  /** The mail that has arrived since it was read. */
  readonly arrived: Mail[];
  /** True if another process continues the run. */
  readonly released: boolean;
}

/**
 * Returns the session of a draft as it is stored: with the messages that arrived `late` if the run ends, and otherwise with the stop that ends it.
 */
export function progressOf(
  { session, readUntil, arrived, released }: Draft,
  { loop, control }: EngineRun,
  stop: Stop | undefined,
  late: readonly Mail[] = [],
): JournalProgress {
  if (!session.run) {
    const messages = loop.transcript.rolledBack ? [] : mailedMessages(late);
    return { session: { ...session, messages: [...session.messages, ...messages] } };
  }
  const lease = {
    until: 0,
    ...((released || session.lease?.released) && { released: true }),
    ...(stop && { closing: stop.reason, ...(stop.requested && { requested: true }) }),
    ...(stop && control.effects.rollback && { rollback: true }),
  };
  const { lease: _, mail: __, ...rest } = session;
  const waiting = waitingCount(session.run.state) + arrived.filter(({ type }) => type === "message").length;
  return { session: { ...rest, ...(!session.run.exit && { lease }) }, waiting, readUntil, released };
}

/** Returns the session that the last save of a run stores: without the run, and with its last event. */
export function endedSession({ run, ...session }: Unsaved, event: Event): Unsaved {
  return run ? { ...session, last: { run: run.id, event, before: run.before, at: Date.now() } } : session;
}
