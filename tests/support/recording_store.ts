/**
 * A store that records each session it saves, for tests in which a process dies.
 *
 * @module
 */
import { memory, type Middleware, type Session, type Store } from "@jizai/jizai";
import { durable } from "@jizai/jizai/session/durable";
import { saving } from "./saving.ts";

/** A store, and its history. */
export interface RecordingStore {
  readonly store: Store;
  /** Each saved session, in order, also those of which only the lease has changed: another process finds it if this one dies after that save. */
  readonly saved: readonly Session[];
}

/** Creates an empty store that records what it saves. */
export function recordingStore(): RecordingStore {
  const kept = memory();
  const saved: Session[] = [];
  return {
    saved,
    store: durable(saving(kept, async (session, save) => {
      const version = await save();
      if (version !== undefined) saved.push(JSON.parse(JSON.stringify({ ...session, version })));
      return version;
    }, async (renew, key, { due }) => {
      const renewed = await renew();
      const { session: id } = await kept.journal.head(key) ?? {};
      const found = saved.findLast((session) => session.id === id);
      const until = Math.ceil(Date.now() + (due ?? 0));
      if (renewed?.stored && found) saved.push({ ...found, lease: { ...found.lease, until } });
      return renewed;
    })),
  };
}

/** Lets the result of a call pass only when it is saved. */
export function heldUntilSaved(saved: readonly Session[]): Middleware {
  const isSaved = (id: string) =>
    saved.some(({ run }) =>
      run?.position.at === "tools" && run.position.calls.some(({ call, state }) => call.id === id && state === "ran")
    );
  return {
    name: "held",
    async tool({ call, resumed }, next) {
      const result = await next();
      while (!resumed && !isSaved(call.id)) await new Promise((resolve) => setTimeout(resolve));
      return result;
    },
  };
}

/** Creates a store that holds `session`, as another process would find it. */
export async function storeWith(session: Session | undefined): Promise<RecordingStore> {
  const next = recordingStore();
  if (session) await next.store.save({ ...session, version: 0 });
  return next;
}
