/**
 * Notes of the model that outlive a session.
 *
 * @module
 */
import { type AnyTool, type Middleware, type Scope, tool, ToolError } from "../../mod.ts";
import { type KeyValue, schemaOf } from "../../src/core/kit.ts";

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

/** A note, and its number. */
interface Note {
  readonly id: number;
  readonly text: string;
}

/**
 * Gives the model the tools `read_notes`, `write_note` and `delete_note`. Notes belong to the owner of the session and outlive it. A new session begins with
 * the notes in its context. Each note has a key of its own, so that sessions which write at the same time keep each other's notes.
 *
 * Notes of one owner are never shown to another. Without an owner, calls fail, and no note is read: on a server set `owner` of `serve()`, and elsewhere `owner`
 * of the run or of `notes()`. Throws a `RangeError` if `max` or `maxLength` is not a whole number of 1 or more.
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
export function notes<V = unknown>(
  { keyValue, owner = ({ run }) => run.owner, max = 100, maxLength = 2_000, expireIn, recall = true }: NotesOptions<V>,
): Middleware<V> {
  for (const [name, value] of Object.entries({ max, maxLength })) {
    if (!(Number.isInteger(value) && value >= 1)) {
      throw new RangeError(`Cannot create notes(): \`${name}\` is ${value}; expected a whole number of 1 or more`);
    }
  }
  const options = expireIn === undefined ? {} : { expireIn };

  /** Returns the prefix of an owner's keys. */
  async function prefixAt(scope: Scope<V>): Promise<string | undefined> {
    const name = await owner(scope);
    if (name === undefined) return undefined;
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(name));
    return `notes/${Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  }

  async function required(scope: Scope<V>): Promise<string> {
    const prefix = await prefixAt(scope);
    if (prefix === undefined) throw new ToolError("Cannot use notes: the session has no owner.");
    return prefix;
  }

  async function read(prefix: string): Promise<readonly Note[]> {
    const texts = await Promise.all(
      Array.from({ length: max }, (_, index) => keyValue.get(`${prefix}/${index + 1}`)),
    );
    return texts.flatMap((text, index) => text === undefined ? [] : [{ id: index + 1, text }]);
  }

  /** Returns the number for a new note. Numbers are counted by the database, and those of deleted notes are used again. */
  async function newId(prefix: string): Promise<number> {
    const id = await keyValue.increment(`${prefix}/count`);
    if (id <= max) return id;
    const used = new Set((await read(prefix)).map((note) => note.id));
    const free = Array.from({ length: max }, (_, index) => index + 1).find((id) => !used.has(id));
    if (free === undefined) throw new ToolError(`Cannot write a note: there are ${max}. Replace or delete one first.`);
    return free;
  }

  const id = { type: "integer", minimum: 1, maximum: max } as const;

  const readNotes = tool({
    name: "read_notes",
    description: "Reads your notes about this user. Notes are kept across conversations.",
    input: schemaOf<Record<never, never>>({ type: "object", properties: {}, additionalProperties: false }),
    readOnly: true,
    execute: async (_, ctx: Parameters<AnyTool<V>["execute"]>[1]) => textOf(await read(await required(ctx))),
  });

  const writeNote = tool({
    name: "write_note",
    description: "Keeps a note about this user for later conversations. With `id`, replaces that note.",
    input: schemaOf<{ readonly text: string; readonly id?: number }>({
      type: "object",
      properties: { text: { type: "string", maxLength }, id },
      required: ["text"],
      additionalProperties: false,
    }, (value) => {
      const { text, id } = Object(value);
      if (typeof text !== "string" || text === "" || text.length > maxLength) {
        return { issues: [{ message: `expected \`text\` of 1 to ${maxLength} characters` }] };
      }
      return id === undefined || isId(id) ? { value: { text, ...(isId(id) && { id }) } } : wrongId;
    }),
    parallel: false,
    async execute({ text, id }, ctx: Parameters<AnyTool<V>["execute"]>[1]) {
      const prefix = await required(ctx);
      const place = id ?? await newId(prefix);
      await keyValue.set(`${prefix}/${place}`, text, options);
      return `Kept as note ${place}.`;
    },
  });

  const deleteNote = tool({
    name: "delete_note",
    description: "Deletes one of your notes about this user.",
    input: schemaOf<{ readonly id: number }>({
      type: "object",
      properties: { id },
      required: ["id"],
      additionalProperties: false,
    }, (value) => {
      const { id } = Object(value);
      return isId(id) ? { value: { id } } : wrongId;
    }),
    parallel: false,
    async execute({ id }, ctx: Parameters<AnyTool<V>["execute"]>[1]) {
      await keyValue.delete(`${await required(ctx)}/${id}`);
      return "Deleted.";
    },
  });

  function isId(id: unknown): id is number {
    return typeof id === "number" && Number.isInteger(id) && id >= 1 && id <= max;
  }
  const wrongId = { issues: [{ message: `expected \`id\`, a whole number from 1 to ${max}` }] };

  return {
    name: "notes",
    tools: [readNotes, writeNote, deleteNote],
    async session(ctx, next) {
      const prefix = recall && ctx.source === "new" ? await prefixAt(ctx) : undefined;
      const kept = prefix === undefined ? [] : await read(prefix);
      if (kept.length === 0) return await next();
      return await next({ context: [...ctx.context, `Your notes about this user:\n${textOf(kept)}`] });
    },
  };
}

function textOf(notes: readonly Note[]): string {
  return notes.length === 0 ? "There are no notes." : notes.map(({ id, text }) => `${id}. ${text}`).join("\n");
}
