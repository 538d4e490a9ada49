/**
 * Whole characters: joins a surrogate pair that a provider splits between two deltas, and replaces a half that stays alone. Half a character is no valid
 * text: stores and strict JSON parsers reject it.
 *
 * @module
 */
import type { ModelEvent } from "./model.ts";

type Delta = Extract<ModelEvent, { readonly text: string }>;

/** Creates a function that receives the events of one response, read by read, and returns them with whole characters only. */
export function wholeCharacters(): (events: readonly ModelEvent[]) => readonly ModelEvent[] {
  /** The first half of a character, as a delta that waits for the second. */
  let held: Delta | undefined;

  function join(event: ModelEvent): readonly ModelEvent[] {
    const first = held;
    held = undefined;
    if (!isDelta(event)) return first ? [replaced(first), event] : [event];
    const continues = first && continuesPart(first, event);
    const before = first && !continues ? [replaced(first)] : [];
    const text = continues ? first.text + event.text : event.text;
    const half = "meta" in event ? "" : text.match(/[\ud800-\udbff]$/)?.[0] ?? "";
    if (half) held = { ...event, text: half };
    const rest = text.slice(0, text.length - half.length);
    return half && rest === "" ? before : [...before, { ...event, text: rest.toWellFormed() }];
  }

  return (events) => !held && events.every(isWhole) ? events : events.flatMap(join);
}

function isDelta(event: ModelEvent): event is Delta {
  return "text" in event;
}

function isWhole(event: ModelEvent): boolean {
  return !isDelta(event) || event.text.isWellFormed();
}

function continuesPart(first: Delta, next: Delta): boolean {
  return first.type === next.type &&
    (first.type !== "call.delta" || first.id === (next.type === first.type && next.id));
}

function replaced(half: Delta): Delta {
  return { ...half, text: "\ufffd" };
}
