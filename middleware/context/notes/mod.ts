/**
 * Notes of the model that outlive a session.
 *
 * @module
 */
import type { Middleware, Scope, SessionContext } from "../../../mod.ts";
import { expectNames, type KeyValue } from "../../../src/core/kit.ts";
import { type Note, noteStore } from "./note_store.ts";
import { noteTools, textOf } from "./tools.ts";

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
  for (const [name, value] of Object.entries({ max, maxLength })) {
    if (!(Number.isInteger(value) && value >= 1)) {
      throw new RangeError(`Cannot create notes(): \`${name}\` is ${value}; expected a whole number of 1 or more`);
    }
  }
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
