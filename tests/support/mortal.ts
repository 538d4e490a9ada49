/**
 * Stores that outlive whoever writes to them, and what is in them at each moment.
 *
 * @module
 */
import { memory, type Session, type Store } from "@jizai/jizai";

/** A store that a process leaves behind. */
export interface Mortal {
  readonly store: Store;
  /** Every session that was saved, in that order: as it is found if the process dies then. */
  readonly saved: readonly Session[];
}

/** Keeps sessions, and all that they have been. */
export function mortal(): Mortal {
  const kept = memory();
  const saved: Session[] = [];
  return {
    saved,
    store: {
      ...kept,
      volatile: false,
      async save(session) {
        const version = await kept.save(session);
        if (version !== undefined) saved.push(JSON.parse(JSON.stringify({ ...session, version })));
        return version;
      },
    },
  };
}

/** What another process finds of a session. */
export async function found(session: Session | undefined): Promise<Mortal> {
  const next = mortal();
  if (session) await next.store.save({ ...session, version: 0 });
  return next;
}
