/**
 * The ids of calls: unique in a session, also if a provider or a cache repeats one. They contain no `/`, which joins the ids of a subagent's call and of its
 * parent's call.
 *
 * @module
 */
import type { ModelResponse } from "../hooks/points/turn.ts";
import type { EngineRun } from "../run/run.ts";

/** Renames calls whose ids the session knows, since a cache returns the same response again, and calls whose ids are empty or contain `/`. */
export function renameCalls(response: ModelResponse, engine: EngineRun, middleware: string): ModelResponse {
  const ids = new Set<string>();
  const parts = response.parts.map((part) => {
    if (part.type !== "call") return part;
    const id = uniqueId(engine, part.id, ids);
    return id === part.id ? part : { ...part, id };
  });
  if (parts.every((part, index) => part === response.parts[index])) return response;
  const isClear = response.parts.every((part) => part.type !== "call" || part.id === clear(part.id));
  const why = isClear ? "of other calls" : "that are empty or contain a /";
  engine.events.warn("transcript.repaired", `The response was not valid: its calls had ids ${why}`, {
    middleware,
    point: "model",
  });
  return { ...response, parts };
}

/** Returns `id`, or a new id made from it if another call has it, if it is empty, or if it contains `/`. */
export function uniqueId({ loop }: EngineRun, id: string, ids: Set<string>): string {
  const base = clear(id);
  let unique = base;
  for (let n = 2; ids.has(unique) || loop.transcript.knows(unique); n++) unique = `${base}_${n}`;
  ids.add(unique);
  return unique;
}

/** Returns an id that can be a part of a path of ids. */
function clear(id: string): string {
  return id.replaceAll("/", "_") || "call";
}
