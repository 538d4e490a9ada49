/**
 * The notes of all owners in a key-value database. Each note has a key of its own, so that sessions which write at the same time keep each other's notes.
 *
 * @module
 */
import { type AnyTool, type Scope, ToolError } from "../../../mod.ts";
import { hashOf, type KeyValue } from "../../../src/core/kit.ts";

/** A note, and its number. */
export interface Note {
  readonly id: number;
  readonly text: string;
}

/** The notes of all owners. */
export type NoteStore = ReturnType<typeof noteStore>;

/** The options of `noteStore()`. */
interface NoteStoreOptions {
  readonly keyValue: KeyValue;
  /** Number of notes that one owner may have. */
  readonly max: number;
  /** Milliseconds after which a note is deleted. Default: never. */
  readonly expireIn: number | undefined;
}

/** Creates the store of a database. */
export function noteStore({ keyValue, max, expireIn }: NoteStoreOptions) {
  const options = expireIn === undefined ? {} : { expireIn };
  const ids = Array.from({ length: max }, (_, index) => index + 1);

  /** Returns the notes of an owner. */
  async function list(owner: string): Promise<readonly Note[]> {
    const prefix = await prefixOf(owner);
    const texts = await Promise.all(ids.map((id) => keyValue.get(`${prefix}/${id}`)));
    return texts.flatMap((text, index) => text === undefined ? [] : [{ id: index + 1, text }]);
  }

  /** Stores a note under a key that has none. Returns false if it has one, or another session is about to store one. */
  async function claim(key: string, text: string): Promise<boolean> {
    const lock = `${key}/lock`;
    if (await keyValue.increment(lock, { expireIn: lockTime }) > 1) return false;
    const isFree = await keyValue.get(key) === undefined;
    if (isFree) await keyValue.set(key, text, options);
    await keyValue.delete(lock);
    return isFree;
  }

  return {
    list,
    /** Stores a new note. Returns its number, from 1, or undefined if the owner has the maximum number of notes. */
    async add(owner: string, text: string): Promise<number | undefined> {
      const prefix = await prefixOf(owner);
      const next = await keyValue.increment(`${prefix}/count`);
      if (next <= max && await claim(`${prefix}/${next}`, text)) return next;
      const used = new Set((await list(owner)).map(({ id }) => id));
      for (const id of ids) { // the numbers of deleted notes
        if (!used.has(id) && await claim(`${prefix}/${id}`, text)) return id;
      }
      return undefined;
    },
    /** Stores a note in place of the one with the same number. Returns false if there is none. */
    async replace(owner: string, { id, text }: Note): Promise<boolean> {
      const key = `${await prefixOf(owner)}/${id}`;
      const exists = await keyValue.get(key) !== undefined;
      if (exists) await keyValue.set(key, text, options);
      return exists;
    },
    /** Deletes a note, if it exists. */
    delete: async (owner: string, id: number): Promise<void> => await keyValue.delete(`${await prefixOf(owner)}/${id}`),
  };
}

/** Milliseconds after which a note may be stored under the key of a session that has died before it stored one. */
const lockTime = 60_000;

/** Returns the prefix of an owner's keys. The hash bounds its length. */
async function prefixOf(owner: string): Promise<string> {
  return `notes/${await hashOf(owner)}`;
}

/**
 * Runs `work` while no other process changes the notes of an owner by this function. Throws a `ToolError` if one does. The lock of a process that died is
 * released after a minute.
 */
export async function exclusively<T>(keyValue: KeyValue, owner: string, work: () => Promise<T>): Promise<T> {
  const lock = `${await prefixOf(owner)}/lock`;
  if (await keyValue.increment(lock, { expireIn: lockTime }) > 1) {
    throw new ToolError("Cannot change the notes: another conversation is changing them. Try again.");
  }
  try {
    return await work();
  } finally {
    await keyValue.delete(lock);
  }
}

// The owner of notes.

/** The context of a call. */
export type ToolContext<V> = Parameters<AnyTool<V>["execute"]>[1];

/** Returns the owner of the notes at a call, or undefined. */
export type OwnerAt<V> = (scope: Scope<V>) => string | undefined | Promise<string | undefined>;

/** Returns the owner of the notes. Throws a `ToolError` if there is none. */
export async function requiredOwner<V>(owner: OwnerAt<V>, ctx: ToolContext<V>): Promise<string> {
  const name = await owner(ctx);
  if (!name) throw new ToolError("Cannot use notes: the session has no owner.");
  return name;
}
