/**
 * Ownership: keys that contain the owner, and a view of a store that holds the sessions of one owner.
 *
 * @module
 */
import { sessionsOf } from "../core/session_version.ts";
import type { RunStore, Store, StoredHead } from "../core/store.ts";
import type { Session, SessionHead } from "../core/session.ts";

/**
 * Returns the key under which a session or run of `owner` is stored; without an owner, its id. Two owners can use the same id.
 * JSON makes the key unambiguous, whatever characters owner and id contain.
 */
export function ownedKey(owner: string | undefined, id: string): string {
  return owner === undefined ? id : JSON.stringify([owner, id]);
}

/** Returns the beginning of all keys of an owner. */
function ownerPrefix(owner: string): string {
  return ownedKey(owner, "").slice(0, -2);
}

/** Returns the id that the owner's requests use for a stored session; undefined if `serve()` did not store it under this key. */
export function idWithoutOwner({ id, owner }: Pick<Session, "id" | "owner">): string | undefined {
  if (owner === undefined) return id;
  return id.startsWith(ownerPrefix(owner)) ? JSON.parse(id)[1] : undefined;
}

/** Returns the session if it belongs to `owner`. Without an owner, every session is returned. */
export function ifOwnedBy<S extends SessionHead>(owner: string | undefined, session: S | undefined): S | undefined {
  return owner === undefined || session?.owner === owner ? session : undefined;
}

/**
 * Returns a view of `store` with the sessions of `owner` only: the sessions that `serve()` saves for this owner. Other owners' sessions do not exist in it.
 *
 * ```ts
 * import { memory } from "@jizai/jizai";
 * import { ownedStore } from "@jizai/jizai/session/log";
 * import { assertEquals } from "@std/assert";
 *
 * const store = memory();
 * const ada = ownedStore(store, "ada");
 * await ada.save({ id: "s1", version: 0, messages: [], owner: "ada" });
 * assertEquals(await ada.list(), ["s1"]);
 * assertEquals(await ownedStore(store, "bob").load("s1"), undefined);
 * ```
 */
export function ownedStore(store: Store, owner: string): Store {
  const prefix = ownerPrefix(owner);
  const scoped = ownedSessions(store, owner);
  const sessions = sessionsOf(scoped);
  return {
    ...scoped,
    ...sessions,
    save: (session) => sessions.save({ ...session, owner }),
    recovery: store.recovery,
    reports: store.reports,
    async list({ after, limit = 100 } = {}) {
      const ids = await store.list({ after: after === undefined ? prefix : ownedKey(owner, after), limit });
      return ids.filter((id) => id.startsWith(prefix)).map((id) => JSON.parse(id)[1]);
    },
    async pending(before, limit) {
      for (let size = limit;; size *= 2) { // the index contains the sessions of all owners
        const ids = await store.pending(before, size);
        const ownedIds = ids.filter((id) => id.startsWith(prefix)).slice(0, limit);
        if (ownedIds.length === limit || ids.length < size) return ownedIds.map((id) => JSON.parse(id)[1]);
      }
    },
  };
}

/** Returns true for a head of the owner. One that is damaged is under a key of the owner, whose requests fail as they read it. */
function isOf(owner: string, text: string): boolean {
  try {
    const head = JSON.parse(text);
    return Object(head) !== head || head.owner === owner;
  } catch {
    return true;
  }
}

/** Returns the operations that runs of `owner` use: those of `ownedStore()`. */
export function ownedSessions(store: RunStore, owner: string): RunStore {
  const keyOf = (id: string) => ownedKey(owner, id);
  /** Returns a session if it belongs to the owner. A session without an owner can have an id that looks like a key. */
  const ifOwned = <S extends StoredHead>(stored: S | undefined) =>
    stored && isOf(owner, stored.head) ? stored : undefined;
  return {
    writer: store.writer,
    head: async (id) => ifOwned(await store.head(keyOf(id))),
    open: async (id) => ifOwned(await store.open(keyOf(id))),
    entries: (id, first, last) => store.entries(keyOf(id), first, last),
    append: (id, addition) => store.append(keyOf(id), addition),
    delete: (id) => store.delete(keyOf(id)),
    touch: (session, until) => store.touch({ ...session, id: keyOf(session.id) }, until),
  };
}
