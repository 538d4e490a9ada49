/**
 * Changes of the conversation in a view. The keys that they take are unique within a run.
 *
 * @module
 */
import type { Entry, Turn, View } from "./view.ts";

/** Adds an entry, or replaces the one with its key. */
export function put(view: View, entry: Entry): View {
  const key = `${view.run} ${entry.key}`;
  const index = view.entries.findIndex((each) => each.key === key);
  const merged = { ...view.entries[index], ...entry, key };
  return { ...view, entries: index < 0 ? [...view.entries, merged] : view.entries.with(index, merged) };
}

/** Appends text to an entry, or adds it. `path` names the subagent that wrote the text. */
export function append(view: View, path: string, entry: Omit<Entry, "text">, text: string): View {
  const key = `${path}${entry.key}`;
  const before = view.entries.find((each) => each.key === `${view.run} ${key}`)?.text ?? "";
  return put(view, { ...entry, key, text: before + text, ...(path && { name: path.slice(0, -1) }) });
}

/** Changes the entry with this key, if there is one. */
export function change(view: View, ownKey: string, fields: Partial<Entry>): View {
  const key = `${view.run} ${ownKey}`;
  return { ...view, entries: view.entries.map((each) => each.key === key ? { ...each, ...fields } : each) };
}

/** Removes the entries of a turn, or only the entries of one kind. */
export function removeTurn(view: View, path: string, turn: number, kind?: Entry["kind"]): View {
  const isRemoved = (entry: Entry) =>
    turnKeyOf(entry) === `${view.run} ${path}${turn}` && (kind === undefined || entry.kind === kind);
  return { ...view, entries: view.entries.filter((entry) => !isRemoved(entry)) };
}

/** Adds a model request, or the fields of one. `path` names the subagent that made it. */
export function putTurn(view: View, path: string, turn: Pick<Turn, "turn"> & Partial<Turn>): View {
  const { run = "", turns } = view;
  const key = `${run} ${path}${turn.turn}`;
  const index = turns.findIndex((each) => each.key === key);
  const merged = { model: "", ...turns[index], ...turn, run, key };
  return { ...view, turns: index < 0 ? [...turns, merged] : turns.with(index, merged) };
}

/** Returns the key of the turn in which the agent or a subagent wrote an entry, or undefined for an entry outside turns. */
export function turnKeyOf({ key, turn }: Entry): string | undefined {
  if (turn === undefined) return undefined;
  return key.slice(0, Math.max(key.lastIndexOf("/"), key.indexOf(" ")) + 1) + turn;
}
