/**
 * A session that its client keeps: the server holds it for one run, and seals it into a resume token when the run pauses.
 *
 * @module
 */
import { appendTo, sessionCache, sessionsIn } from "../../core/memory.ts";
import type { NumberedEvent } from "../../core/events.ts";
import type { Event } from "../../protocol/event.ts";
import { openSession, SessionVersion } from "../../core/session_version.ts";
import type { RunStore } from "../../core/store.ts";
import { isPaused, type Session } from "../../core/session.ts";
import { type Sink, SinkFilter } from "../../stream/channel.ts";

/** A session that the server holds for one run. */
export interface HeldSession {
  /** The session from the resume token; undefined for a new session. */
  readonly session: Session | undefined;
  /** The store for the run. It holds this session only. */
  readonly store: RunStore;
  /** Passes events on to `sink`. A resume token is added to `run.paused`. */
  to(sink: Sink<NumberedEvent>): Sink<NumberedEvent>;
}

/** Holds `session` for one run. `seal` makes the resume token when the run pauses. */
export function holdSession(
  session: Session | undefined,
  seal: (session: Session) => Promise<string>,
): HeldSession {
  const sessions = sessionCache();
  let resumeToken: string | undefined;
  /** The id under which the operator received the reason why the session was not saved. */
  let unsaved: string | undefined;
  if (session) {
    const { addition } = SessionVersion.none.next(session, { holder: crypto.randomUUID() });
    appendTo(sessions, session.id, addition);
  }

  const operations = sessionsIn(sessions);
  const store: RunStore = {
    ...operations,
    async append(id, addition) {
      if (!await operations.append(id, addition)) return false;
      const { session } = await openSession(operations, id);
      if (session && isPaused(session)) resumeToken = await seal(session);
      return true;
    },
  };

  /** Returns the event that the client receives. A run whose pause was not saved has failed. */
  function shown(event: Event): Event {
    if (event.type === "run.paused" && resumeToken !== undefined) return { ...event, resumeToken };
    if (event.type !== "run.failed" || event.error !== unsaved) return event;
    return { ...event, message: "The run cannot pause: its session does not fit into a resume token." };
  }

  return {
    session,
    store,
    to: (sink) =>
      new SinkFilter(sink, ({ id, event }) => {
        if (event.type === "warning" && event.code === "session.unsaved") unsaved = event.error;
        sink.write({ id, event: shown(event) });
      }),
  };
}
