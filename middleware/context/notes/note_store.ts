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
  /** Returns the number for a new note, from 1, or undefined if the owner has the maximum number of notes. */
  newId(owner: string): Promise<number | undefined>;
  /** Stores a note, in place of the one with the same number. */
  set(owner: string, note: Note): Promise<void>;
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

  return {
    list,
    async newId(owner) {
      const id = await keyValue.increment(`${await prefixOf(owner)}/count`);
      if (id <= max) return id;
      const used = new Set((await list(owner)).map((note) => note.id));
      return ids.find((id) => !used.has(id)); // the number of a deleted note
    },
    set: async (owner, { id, text }) => await keyValue.set(`${await prefixOf(owner)}/${id}`, text, options),
    delete: async (owner, id) => await keyValue.delete(`${await prefixOf(owner)}/${id}`),
  };
}

/** Returns the prefix of an owner's keys. The hash bounds its length. */
async function prefixOf(owner: string): Promise<string> {
  return `notes/${await hashOf(owner)}`;
}
