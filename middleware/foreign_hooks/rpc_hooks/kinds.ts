/**
 * The kinds of events that hooks can be told of.
 *
 * @module
 */

/** Every kind that can happen, by its name in document and configuration. Its place is its number on the wire of the document's version. */
const names = [
  "turn_start",
  "turn_end",
  "llm_request",
  "llm_delta",
  "llm_response",
  "llm_retry",
  "context_compress",
  "session_summarize",
  "tool_exec_start",
  "tool_exec_end",
  "tool_exec_skipped",
  "steering_injected",
  "follow_up_queued",
  "interrupt_received",
  "subturn_spawn",
  "subturn_end",
  "subturn_result_delivered",
  "subturn_orphan",
  "error",
] as const;

/** What happened. */
export type Kind = (typeof names)[number];

/** Kinds of parts of a system that are not here: they may be asked for, and never happen. */
const elsewhere =
  /^(agent\.(message|thread)|channel|bus|gateway|mcp)\.[a-z_.]+$|^(message_(sent|delivered|received|reply|blocked)|thread_closed)$/;

/** The number of a kind. */
export function numberOf(kind: Kind): number {
  return names.indexOf(kind);
}

/** The name of a kind as later versions have it. */
export function runtimeName(kind: Kind): string {
  return `agent.${kind.replace(/^(follow_up|[a-z]+)_/, "$1.")}`;
}

const known: ReadonlyMap<string, Kind> = new Map(names.flatMap((name) => [[name, name], [runtimeName(name), name]]));

/** The kinds that are asked for, under whichever of their names. Nothing asks for none. Throws a `TypeError` for one that there is not. */
export function kindsOf(observe: readonly string[]): ReadonlySet<Kind> {
  if (observe.some((name) => ["", "*", "all"].includes(name))) return new Set(names);
  return new Set(observe.flatMap((name) => {
    const kind = known.get(name);
    if (!kind && !elsewhere.test(name)) throw new TypeError(`there is no event "${name}" to observe`);
    return kind ? [kind] : [];
  }));
}
