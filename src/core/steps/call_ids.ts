/**
 * The ids of calls: unique in a session, also if a provider or a cache repeats one.
 *
 * @module
 */
import type { ModelResponse } from "../hooks/points/turn.ts";
import type { EngineRun } from "../run/run.ts";

/** Renames calls whose ids the session knows: a cache returns the same response again. */
export function renameCalls(response: ModelResponse, engine: EngineRun, middleware: string): ModelResponse {
  const ids = new Set<string>();
  const parts = response.parts.map((part) => {
    if (part.type !== "call") return part;
    const id = uniqueId(engine, part.id, ids);
    return id === part.id ? part : { ...part, id };
  });
  if (parts.every((part, index) => part === response.parts[index])) return response;
  engine.events.warn("transcript.repaired", "The response was not valid: its calls had ids of other calls", {
    middleware,
    point: "model",
  });
  return { ...response, parts };
}

/** Returns `id`, or a new id made from it if another call has it. */
export function uniqueId({ loop }: EngineRun, id: string, ids: Set<string>): string {
  let unique = id;
  for (let n = 2; ids.has(unique) || loop.transcript.knows(unique); n++) unique = `${id}_${n}`;
  ids.add(unique);
  return unique;
}
