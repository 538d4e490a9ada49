/**
 * A session that its client keeps: the server holds it for one run, and seals it into a resume token when the run pauses.
 *
 * @module
 */
import { writeInMemory } from "../../core/persistence/memory/writer.ts";
import type { NumberedEvent } from "../../core/run/events.ts";
import type { Event } from "../../protocol/event.ts";
import type { Store } from "../../core/persistence/store.ts";
import { isPaused, type Session } from "../../core/persistence/session.ts";
import { type Sink, SinkFilter } from "../../stream/channel.ts";

/** A session that the server holds for one run. */
export interface HeldSession {
  /** The session from the resume token; undefined for a new session. */
  readonly session: Session | undefined;
  /** The store for the run. It holds this session only. */
  readonly store: Store;
  /** Passes events on to `sink`. A resume token is added to `run.paused`. */
  to(sink: Sink<NumberedEvent>): Sink<NumberedEvent>;
}

/** Holds `session` for one run. `seal` makes the resume token when the run pauses. */
export function holdSession(
  session: Session | undefined,
  seal: (session: Session) => Promise<string>,
): HeldSession {
  let current = session;
  let resumeToken: string | undefined;
  /** The id under which the operator received the reason why the session was not saved. */
  let unsaved: string | undefined;

  const store: Store = {
    writer: writeInMemory,
    load: (id) => Promise.resolve(current?.id === id ? current : undefined),
    async save(session) {
      if ((current?.version ?? 0) !== session.version) return undefined;
      const saved = { ...session, version: session.version + 1 };
      if (isPaused(saved)) resumeToken = await seal(saved);
      current = saved;
      return saved.version;
    },
    delete() {
      current = undefined;
      return Promise.resolve();
    },
    list: () => Promise.resolve(current ? [current.id] : []),
    pending: () => Promise.resolve([]),
    touch: () => Promise.resolve(false),
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
