/**
 * Saved sessions: what each save of a run contains, as the middleware of its agent lets the store keep it, and what its last save leaves.
 *
 * @module
 */
import type { JournalProgress } from "./journal_writer.ts";
import type { Stop } from "./position.ts";
import type { EngineRun } from "./run.ts";
import { type Mail, mailedMessages, type Unsaved } from "./session.ts";
import { waitingCount } from "./steering.ts";
import type { Event } from "../protocol/event.ts";

/** Returns the session with the run as it is now. */
export function savedSession(run: EngineRun): Unsaved {
  const { session: id, rules, sessionState, claimed: { owner }, loop: { transcript: { messages, compactions } } } = run;
  return savedForm(run, {
    id,
    messages,
    run: run.snapshot(),
    ...(owner !== undefined && { owner }),
    ...(compactions > 0 && { compactions }),
    ...(sessionState.size > 0 && { state: [...sessionState] }),
    ...(rules.length > 0 && { rules }),
  });
}

/** Returns a session as the middleware of its run lets the store keep it. */
export function savedForm(run: EngineRun, session: Unsaved): Unsaved {
  return run.definition.savers.reduce((form, save) => save(form, run.scope()), session);
}

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
