/**
 * The check of the tools that a client runs.
 *
 * @module
 */
import { SessionError } from "../../core/persistence/session_error.ts";
import type { Claimed } from "../../core/persistence/claimed.ts";
import type { Beginning } from "../../core/start/options.ts";

/** Throws if a tool of a client has the name of an agent's own tool, or of one that a middleware may add: it would run in its place. */
export function checkClientTools({ definition, options, session }: Beginning, { pause }: Claimed): void {
  const { tools: own, use } = definition;
  for (const { name } of options.tools ?? []) {
    const isOwn = own.some((tool) => tool.name === name);
    const prefix = use.flatMap(({ toolPrefixes = [] }) => toolPrefixes).find((each) => name.startsWith(each));
    const isAsked = pause?.questions?.some(({ tool }) => tool === name); // wires create a tool for each question that a client may answer
    if (isAsked || (!isOwn && prefix === undefined)) continue;
    const why = isOwn
      ? `the agent has a tool "${name}"; expected another name`
      : `a middleware adds tools with the prefix "${prefix}"; expected a name without it, got "${name}"`;
    throw new SessionError(`Cannot add a tool to session "${session}": ${why}`, "invalid");
  }
}
