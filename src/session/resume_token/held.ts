/**
 * A session in the hands of its client, while a server has it: kept for one run, and sealed where that pauses.
 *
 * @module
 */
import type { NumberedEvent } from "../../core/events.ts";
import type { Store } from "../../core/store.ts";
import type { Session } from "../../protocol/session.ts";
import type { Sink } from "../../stream/channel.ts";

/** A session that is held for one run. */
export interface Held {
  /** The session as it came; nothing where it is new. */
  readonly session: Session | undefined;
  /** Where the run keeps it. */
  readonly store: Store;
  /** Hands events on to `sink`; `run.paused` takes the resume token along. */
  to(sink: Sink<NumberedEvent>): Sink<NumberedEvent>;
}

/** Holds `session`, which `seal` makes a resume token of. */
export function held(session: Session | undefined, seal: (session: Session) => Promise<string>): Held {
  let kept = session;
  let resumeToken: string | undefined;

  const store: Store = {
    volatile: true,
    load: (id) => Promise.resolve(kept?.id === id ? kept : undefined),
    async save(session) {
      if ((kept?.version ?? 0) !== session.version) return undefined;
      const saved = { ...session, version: session.version + 1 };
      if (saved.run?.status === "paused") resumeToken = await seal(saved);
      kept = saved;
      return saved.version;
    },
    delete() {
      kept = undefined;
      return Promise.resolve();
    },
    list: () => Promise.resolve(kept ? [kept.id] : []),
  };

  return {
    session,
    store,
    to: (sink) => ({
      write({ id, event }) {
        const told = event.type === "run.paused" && resumeToken !== undefined ? { ...event, resumeToken } : event;
        sink.write({ id, event: told });
      },
      cork: sink.cork,
      uncork: sink.uncork,
      get full() {
        return sink.full;
      },
      settled: () => sink.settled?.() ?? Promise.resolve(),
      yield: () => sink.yield?.(),
      close: sink.close,
    }),
  };
}
