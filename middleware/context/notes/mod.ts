/**
 * Notes of the model that outlive a session.
 *
 * @module
 */
import { type AnyTool, type Middleware, type Scope, type SessionContext, tool, ToolError } from "../../../mod.ts";
import { expectCount, expectNames, type KeyValue, schemaOf } from "../../../src/core/kit.ts";
import { type Note, type NoteStore, noteStore, type OwnerAt, requiredOwner, type ToolContext } from "./store.ts";
export type { KeyValue } from "../../../src/core/kit.ts";

// The tools with which the model reads, writes and deletes its notes.

/** The bounds of notes. */
interface NoteBounds {
  /** Number of notes that one owner may have. */
  readonly max: number;
  /** Number of characters of one note. */
  readonly maxLength: number;
}

/** Creates the tools. `owner` returns the owner of the notes at a call. */
function noteTools<V>(store: NoteStore, owner: OwnerAt<V>, bounds: NoteBounds): readonly AnyTool<V>[] {
  return [readNotes(store, owner), writeNote(store, owner, bounds), deleteNote(store, owner, bounds)];
}

/** Returns notes as text for the model. */
function textOf(notes: readonly Note[]): string {
  return notes.length === 0 ? "There are no notes." : notes.map(({ id, text }) => `${id}. ${text}`).join("\n");
}

function readNotes<V>(store: NoteStore, owner: OwnerAt<V>): AnyTool<V> {
  return tool({
    name: "read_notes",
    description: "Reads your notes about this user. Notes are kept across conversations.",
    input: schemaOf<Record<never, never>>({ type: "object", properties: {}, additionalProperties: false }),
    readOnly: true,
    operation: { type: "search_memory" },
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
    operation: ({ id }) => id === undefined ? { type: "create_memory" } : { type: "update_memory", record: `${id}` },
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
    operation: ({ id }) => ({ type: "delete_memory", record: `${id}` }),
    async execute({ id }, ctx: ToolContext<V>) {
      await store.delete(await requiredOwner(owner, ctx), id);
      return "Deleted.";
    },
  });
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

// The middleware `notes()`, and its options.

/** Options of `notes()`. */
export interface NotesOptions<V = unknown> {
  /** The database of the notes. */
  readonly keyValue: KeyValue;
  /** Returns the owner of the notes. Default: the owner of the session. */
  readonly owner?: (scope: Scope<V>) => string | undefined | Promise<string | undefined>;
  /** Number of notes that one owner may have. Default: 100. */
  readonly max?: number;
  /** Number of characters of one note. Default: 2,000. */
  readonly maxLength?: number;
  /** Milliseconds after which a note is deleted. Default: never. */
  readonly expireIn?: number;
  /** Whether a new session begins with the notes in its context. Default: true. */
  readonly recall?: boolean;
}

/**
 * Gives the model the tools `read_notes`, `write_note` and `delete_note`. Notes belong to the owner of the session and outlive it. A new session begins with
 * the notes in its context, or without them if the database fails. Each note has a key of its own, so that sessions which write at the same time keep each
 * other's notes.
 *
 * Notes of one owner are never shown to another. Without an owner, or if it is an empty text, calls fail, and no note is read: on a server set `owner` of
 * `serve()`, and elsewhere `owner` of the run or of `notes()`. Throws a `RangeError` if `max` or `maxLength` is not a whole number of 1 or more.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { notes } from "@jizai/jizai/middleware/notes";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { memoryKeyValue } from "@jizai/jizai/session/key_value";
 * import { assertStringIncludes } from "@std/assert";
 *
 * const model = scripted({ calls: [["write_note", { text: "Prefers tea" }]] }, "Noted.", "Tea, I know.");
 * const assistant = agent({ model, use: [notes({ keyValue: memoryKeyValue() })] });
 *
 * await assistant.run({ prompt: "I prefer tea", owner: "ada" }).result;
 * await assistant.run({ prompt: "A drink, please", owner: "ada" }).result; // a new session
 * assertStringIncludes(JSON.stringify(model.requests[2]?.messages), "Prefers tea");
 * ```
 */
export function notes<V = unknown>(options: NotesOptions<V>): Middleware<V> {
  expectNames("Cannot create notes()", options, ["keyValue", "owner", "max", "maxLength", "expireIn", "recall"]);
  const { keyValue, owner = ({ run }) => run.owner, max = 100, maxLength = 2_000, expireIn, recall = true } = options;
  expectCount("Cannot create notes()", { max, maxLength });
  const store = noteStore({ keyValue, max, expireIn });

  /** Returns the notes for a new session: none if they cannot be read. */
  async function recalled(ctx: SessionContext<V>): Promise<readonly Note[]> {
    try {
      const name = await owner(ctx);
      return name ? await store.list(name) : [];
    } catch (error) {
      const message = "The notes could not be read.";
      const id = ctx.run.report(error);
      ctx.emit({ type: "warning", code: "hook.failed", message, middleware: "notes", point: "session", error: id });
      return [];
    }
  }

  return {
    name: "notes",
    tools: noteTools(store, owner, { max, maxLength }),
    async session(ctx, next) {
      const stored = recall && ctx.source === "new" ? await recalled(ctx) : [];
      if (stored.length === 0) return await next();
      return await next({ context: [...ctx.context, `Your notes about this user:\n${textOf(stored)}`] });
    },
  };
}
