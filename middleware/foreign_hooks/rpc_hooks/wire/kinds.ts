/**
 * The kinds of events that hooks can observe.
 *
 * @module
 */

/** Every kind, by its name in the document. Its index is its number in the version of the document. */
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

/** The kind of an event. */
export type Kind = (typeof names)[number];

/** The form of kinds: `tool_exec_start`, 8, or `agent.tool.exec_start`. */
export type KindForm = "names" | "numbers" | "dotted";

/** Kinds of parts of the home system that do not exist here. Hooks may ask for them. */
const elsewhere =
  /^(agent\.(message|thread)|channel|bus|gateway|mcp)\.[a-z_.]+$|^(message_(sent|delivered|received|reply|blocked)|thread_closed)$/;

/** Writes a kind. */
export function writeKind(kind: Kind, form: KindForm): string | number {
  if (form === "numbers") return names.indexOf(kind);
  return form === "names" ? kind : `agent.${kind.replace(/^(follow_up|[a-z]+)_/, "$1.")}`;
}

const known: ReadonlyMap<string, Kind> = new Map(
  names.flatMap((name): [string, Kind][] => [[name, name], [String(writeKind(name, "dotted")), name]]),
);

/** Returns the kinds that a configuration names. Throws a `TypeError` for an unknown one. */
export function kindsOf(observe: readonly string[]): ReadonlySet<Kind> {
  if (observe.some((name) => ["", "*", "all"].includes(name))) return new Set(names);
  return new Set(observe.flatMap((name) => {
    const kind = known.get(name);
    if (!kind && !elsewhere.test(name)) throw new TypeError(`unknown event "${name}" in \`observe\``);
    return kind ? [kind] : [];
  }));
}
