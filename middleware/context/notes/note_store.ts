/**
 * Stores notes in a key-value database. Each note has a key of its own, so that sessions which write at the same time keep each other's notes.
 *
 * @module
 */
import { hashOf, type KeyValue } from "../../../src/core/kit.ts";

/** A note, and its number. */
export interface Note {
  readonly id: number;
  readonly text: string;
}

/** The notes of all owners. */
export interface NoteStore {
  /** Returns the notes of an owner. */
  list(owner: string): Promise<readonly Note[]>;
  /** Stores a new note. Returns its number, from 1, or undefined if the owner has the maximum number of notes. */
  add(owner: string, text: string): Promise<number | undefined>;
  /** Stores a note in place of the one with the same number. Returns false if there is none. */
  replace(owner: string, note: Note): Promise<boolean>;
  /** Deletes a note, if it exists. */
  delete(owner: string, id: number): Promise<void>;
}

/** The options of `noteStore()`. */
export interface NoteStoreOptions {
  readonly keyValue: KeyValue;
  /** Number of notes that one owner may have. */
  readonly max: number;
  /** Milliseconds after which a note is deleted. Default: never. */
  readonly expireIn: number | undefined;
}

/** Creates the store of a database. */
export function noteStore({ keyValue, max, expireIn }: NoteStoreOptions): NoteStore {
  const options = expireIn === undefined ? {} : { expireIn };
  const ids = Array.from({ length: max }, (_, index) => index + 1);

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
    async add(owner, text) {
      const prefix = await prefixOf(owner);
      const next = await keyValue.increment(`${prefix}/count`);
      if (next <= max && await claim(`${prefix}/${next}`, text)) return next;
      const used = new Set((await list(owner)).map(({ id }) => id));
      for (const id of ids) { // the numbers of deleted notes
        if (!used.has(id) && await claim(`${prefix}/${id}`, text)) return id;
      }
      return undefined;
    },
    async replace(owner, { id, text }) {
      const key = `${await prefixOf(owner)}/${id}`;
      const exists = await keyValue.get(key) !== undefined;
      if (exists) await keyValue.set(key, text, options);
      return exists;
    },
    delete: async (owner, id) => await keyValue.delete(`${await prefixOf(owner)}/${id}`),
  };
}

/** Milliseconds after which a note may be stored under the key of a session that has died before it stored one. */
const lockTime = 60_000;

/** Returns the prefix of an owner's keys. The hash bounds its length. */
async function prefixOf(owner: string): Promise<string> {
  return `notes/${await hashOf(owner)}`;
}
