/**
 * The tools with which the model reads, writes and deletes its notes.
 *
 * @module
 */
import { type AnyTool, type Scope, tool, ToolError } from "../../../mod.ts";
import { schemaOf } from "../../../src/core/kit.ts";
import type { Note, NoteStore } from "./note_store.ts";

/** The bounds of notes. */
export interface NoteBounds {
  /** Number of notes that one owner may have. */
  readonly max: number;
  /** Number of characters of one note. */
  readonly maxLength: number;
}

type ToolContext<V> = Parameters<AnyTool<V>["execute"]>[1];
type OwnerAt<V> = (scope: Scope<V>) => string | undefined | Promise<string | undefined>;

/** Creates the tools. `owner` returns the owner of the notes at a call. */
export function noteTools<V>(store: NoteStore, owner: OwnerAt<V>, bounds: NoteBounds): readonly AnyTool<V>[] {
  return [readNotes(store, owner), writeNote(store, owner, bounds), deleteNote(store, owner, bounds)];
}

/** Returns notes as text for the model. */
export function textOf(notes: readonly Note[]): string {
  return notes.length === 0 ? "There are no notes." : notes.map(({ id, text }) => `${id}. ${text}`).join("\n");
}

function readNotes<V>(store: NoteStore, owner: OwnerAt<V>): AnyTool<V> {
  return tool({
    name: "read_notes",
    description: "Reads your notes about this user. Notes are kept across conversations.",
    input: schemaOf<Record<never, never>>({ type: "object", properties: {}, additionalProperties: false }),
    readOnly: true,
    execute: async (_, ctx: ToolContext<V>) => textOf(await store.list(await requiredOwner(owner, ctx))),
  });
}

function writeNote<V>(store: NoteStore, owner: OwnerAt<V>, { max, maxLength }: NoteBounds): AnyTool<V> {
  return tool({
    name: "write_note",
    description: "Keeps a note about this user for later conversations. With `id`, replaces that note.",
    input: schemaOf<{ readonly text: string; readonly id?: number }>({
      type: "object",
      properties: { text: { type: "string", maxLength }, id: idSchema(max) },
      required: ["text"],
      additionalProperties: false,
    }, (value) => {
      const { text, id } = Object(value);
      if (typeof text !== "string" || text === "" || text.length > maxLength) {
        return { issues: [{ message: `expected \`text\` of 1 to ${maxLength} characters` }] };
      }
      if (id === undefined) return { value: { text } };
      return isId(id, max) ? { value: { text, id } } : wrongId(max);
    }),
    parallel: false,
    async execute({ text, id: replaced }, ctx: ToolContext<V>) {
      const name = await requiredOwner(owner, ctx);
      if (replaced !== undefined && !await store.replace(name, { id: replaced, text })) {
        throw new ToolError(`Cannot replace note ${replaced}: it does not exist. Write a new note without \`id\`.`);
      }
      const id = replaced ?? await store.add(name, text);
      if (id === undefined) throw new ToolError(`Cannot write a note: there are ${max}. Replace or delete one first.`);
      return `Kept as note ${id}.`;
    },
  });
}

function deleteNote<V>(store: NoteStore, owner: OwnerAt<V>, { max }: NoteBounds): AnyTool<V> {
  return tool({
    name: "delete_note",
    description: "Deletes one of your notes about this user.",
    input: schemaOf<{ readonly id: number }>({
      type: "object",
      properties: { id: idSchema(max) },
      required: ["id"],
      additionalProperties: false,
    }, (value) => {
      const { id } = Object(value);
      return isId(id, max) ? { value: { id } } : wrongId(max);
    }),
    parallel: false,
    async execute({ id }, ctx: ToolContext<V>) {
      await store.delete(await requiredOwner(owner, ctx), id);
      return "Deleted.";
    },
  });
}

/** Returns the owner of the notes. Throws a `ToolError` if there is none. */
async function requiredOwner<V>(owner: OwnerAt<V>, ctx: ToolContext<V>): Promise<string> {
  const name = await owner(ctx);
  if (!name) throw new ToolError("Cannot use notes: the session has no owner.");
  return name;
}

function idSchema(max: number) {
  return { type: "integer", minimum: 1, maximum: max } as const;
}

function isId(id: unknown, max: number): id is number {
  return typeof id === "number" && Number.isInteger(id) && id >= 1 && id <= max;
}

function wrongId(max: number) {
  return { issues: [{ message: `expected \`id\`, a whole number from 1 to ${max}` }] };
}
