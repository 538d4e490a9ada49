/**
 * Plain words for the acts of hooks and for decisions.
 *
 * @module
 */
import type { Decider, Decision } from "../../../../protocol/event.ts";
import type { Span } from "./view.ts";

/** The kinds of acts that the page tells apart. */
export type ActKind = "passed" | "changed" | "answered" | "denied" | "asked" | "paused" | "failed";

/** An act of a hook, in words. */
export interface Act {
  readonly kind: ActKind;
  readonly text: string;
}

/** The legend: each kind with its symbol, its name and its meaning. */
export const legend: readonly { readonly kind: ActKind; readonly symbol: string; readonly meaning: string }[] = [
  { kind: "passed", symbol: "→", meaning: "changed nothing" },
  { kind: "changed", symbol: "✎", meaning: "the input, the result, or tried again" },
  { kind: "answered", symbol: "↩", meaning: "in place of what is inside" },
  { kind: "denied", symbol: "✕", meaning: "the call may not run" },
  { kind: "asked", symbol: "?", meaning: "a person decides" },
  { kind: "paused", symbol: "‖", meaning: "until a person answers" },
  { kind: "failed", symbol: "!", meaning: "threw an error" },
];

/** Words for keys whose names say little outside the code. */
const nouns: Readonly<Record<string, string>> = { emit: "events", signal: "cancellation" };

/** Returns the symbol of a kind. */
export function symbolOf(kind: ActKind): string {
  return legend.find((each) => each.kind === kind)?.symbol ?? "";
}

/** Returns the acts of a hook, in words. */
export function actsOf({ acts = [], changed = [], decided }: Span): readonly Act[] {
  return acts.map((act): Act => {
    switch (act) {
      case "changed":
        return { kind: "changed", text: `changed the ${changed.map((key) => nouns[key] ?? key).join(" and the ")}` };
      case "retried":
        return { kind: "changed", text: "tried again" };
      case "answered":
        return decisionOf(decided) ?? { kind: "answered", text: "answered" };
      case "replaced":
        return decisionOf(decided) ?? { kind: "changed", text: "changed the result" };
      case "threw":
        return { kind: "failed", text: "failed" };
      case "stopped":
        return { kind: "paused", text: "stopped" };
      default:
        return { kind: act, text: act };
    }
  });
}

/** Returns the decision that a hook made itself, if the point decides about a call. */
function decisionOf(decided: string | undefined): Act | undefined {
  if (decided === "deny" || decided === "denied") return { kind: "denied", text: "denied" };
  if (decided === "ask") return { kind: "asked", text: "asked" };
  return decided === "allow" ? { kind: "answered", text: "answered: allowed" } : undefined;
}

/** Returns a decision about a call and its origin, in words. */
export function verdictOf(decision: Decision, by: Decider): string {
  const origins = { policy: "by policy", person: "by a person", rule: "by a standing rule" } as const;
  const acts = by === "person" ? { allow: "approved", deny: "denied" } : { allow: "allowed", deny: "denied" };
  return `${acts[decision]} ${origins[by]}`;
}
