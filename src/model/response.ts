/**
 * Parts of a response parser: readers of a response's members, and the joining of characters that are split between deltas.
 *
 * @module
 */
import { ModelError, type ModelEvent } from "./model.ts";
import { isObject, type UnknownObject } from "../protocol/shape.ts";

// Readers for the members of a provider's response. A member that is absent or null is empty. A member of another type than expected throws a `ModelError`
// that names it, because a value that is lost in silence changes the answer.

/** Returns the string in the member `name`, or an empty string. */
export function stringIn(from: UnknownObject, name: string): string {
  const value = from[name] ?? "";
  return typeof value === "string" ? value : unreadable(name, "a string", value);
}

/** Returns the field `id` of a response, if the provider gave it one. Another value than a text is no error: only telemetry reads it. */
export function idField(id: unknown): { readonly id?: string } {
  return typeof id === "string" && id !== "" ? { id } : {};
}

/** Returns the number in the member `name`, or 0. */
export function numberIn(from: UnknownObject, name: string): number {
  const value = from[name] ?? 0;
  return typeof value === "number" ? value : unreadable(name, "a number", value);
}

/** Returns the object in the member `name`, or an empty object. An empty array is one too: some servers write an empty object so. */
export function objectIn(from: UnknownObject, name: string): UnknownObject {
  const value = from[name] ?? {};
  if (Array.isArray(value) && value.length === 0) return {};
  return isObject(value) ? value : unreadable(name, "an object", value);
}

/** Returns the values of the array in the member `name` that are not null. */
export function listIn(from: UnknownObject, name: string): readonly NonNullable<unknown>[] {
  const value = from[name] ?? [];
  return Array.isArray(value) ? value.filter((item) => item !== null) : unreadable(name, "an array", value);
}

/** Returns the objects of the array in the member `name`. */
export function objectsIn(from: UnknownObject, name: string): readonly UnknownObject[] {
  return listIn(from, name).map((item) => isObject(item) ? item : unreadable(name, "an array of objects", item));
}

/** Throws the error of a member that cannot be read. Its value is not quoted, because it may be a text of the person. */
export function unreadable(name: string, expected: string, value: unknown): never {
  const type = Array.isArray(value) ? "an array" : value === null ? "null" : `a value of type ${typeof value}`;
  throw new ModelError(`Cannot read the response: expected ${expected} in \`${name}\`, got ${type}`);
}

/** Creates a function that adds a warning of content that is left out, once for each kind of content in a response of `model`. */
export function unreadWarnings(model: string): (content: string, events: ModelEvent[]) => void {
  const warned = new Set<string>();
  return (content, events) => {
    if (warned.has(content)) return;
    warned.add(content);
    events.push({ type: "warning", message: `The response of ${model} contains ${content}.` });
  };
}

// Whole characters: joins a surrogate pair that a provider splits between two deltas, and replaces a half that stays alone. Half a character is no valid
// text: stores and strict JSON parsers reject it.

type Delta = Extract<ModelEvent, { readonly text: string }>;

/** Creates a function that receives the events of one response, read by read, and returns them with whole characters only. */
export function wholeCharacters(): (events: readonly ModelEvent[]) => readonly ModelEvent[] {
  /** The first half of a character, as a delta that waits for the second. */
  let pending: Delta | undefined;

  function join(event: ModelEvent): readonly ModelEvent[] {
    const first = pending;
    pending = undefined;
    if (!isDelta(event)) return first ? [replaced(first), event] : [event];
    const continues = first && continuesPart(first, event);
    const before = first && !continues ? [replaced(first)] : [];
    const text = continues ? first.text + event.text : event.text;
    const half = "meta" in event ? "" : text.match(/[\ud800-\udbff]$/)?.[0] ?? "";
    if (half) pending = { ...event, text: half };
    const rest = text.slice(0, text.length - half.length);
    return half && rest === "" ? before : [...before, { ...event, text: rest.toWellFormed() }];
  }

  return (events) => !pending && events.every(isWhole) ? events : events.flatMap(join);
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
