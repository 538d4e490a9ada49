/**
 * Changes of the conversation in a view.
 *
 * @module
 */
import type { Entry, View } from "./view.ts";

/** Functions that return a changed view. The keys they take are unique within a run. */
export interface EntryUpdates {
  /** Adds an entry, or replaces the one with its key. */
  put(view: View, entry: Entry): View;
  /** Appends text to an entry, or adds it. `path` names the subagent that wrote the text. */
  append(view: View, path: string, entry: Omit<Entry, "text">, text: string): View;
  /** Changes the entry with this key, if there is one. */
  change(view: View, key: string, fields: Partial<Entry>): View;
  /** Removes the entries of a turn, or only the entries of one kind. */
  removeTurn(view: View, path: string, turn: number, who?: Entry["who"]): View;
}

/** Creates the functions. Runs in the page, so it uses nothing outside itself. */
export function entryUpdates(): EntryUpdates {
  return {
    put,
    append(view, path, entry, text) {
      const key = `${path}${entry.key}`;
      const before = view.entries.find((each) => each.key === `${view.run} ${key}`)?.text ?? "";
      return put(view, { ...entry, key, text: before + text, ...(path && { name: path.slice(0, -1) }) });
    },
    change(view, ownKey, fields) {
      const key = `${view.run} ${ownKey}`;
      return { ...view, entries: view.entries.map((each) => each.key === key ? { ...each, ...fields } : each) };
    },
    removeTurn(view, path, turn, who) {
      const isRemoved = (entry: Entry) =>
        entry.turn === turn && (who === undefined || entry.who === who) && isFrom(view, entry, path);
      return { ...view, entries: view.entries.filter((entry) => !isRemoved(entry)) };
    },
  };

  function put(view: View, entry: Entry): View {
    const key = `${view.run} ${entry.key}`;
    const index = view.entries.findIndex((each) => each.key === key);
    const merged = { ...view.entries[index], ...entry, key };
    return { ...view, entries: index < 0 ? [...view.entries, merged] : view.entries.with(index, merged) };
  }

  /** Whether the agent at `path` wrote the entry, and not one of its subagents. */
  function isFrom(view: View, { key }: Entry, path: string): boolean {
    const prefix = `${view.run} ${path}`;
    return key.startsWith(prefix) && !key.slice(prefix.length).includes("/");
  }
}
