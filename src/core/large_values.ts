/**
 * Large values of a session's head. They are entries, to which the head refers by number, so that a save writes only those that have changed.
 *
 * @module
 */

/** The least number of characters of a large value, as JSON. */
const large = 1_000;

/** The only member of a reference, whose value is a number. Another object with this member is kept as the value of the member in an object of its own. */
const member = "$entry";

/** A head, or a large value, in which references stand for large values. */
export interface Outline {
  /** The head as JSON. */
  readonly text: string;
  /** The values that are not stored yet, as JSON, in the order of their numbers. */
  readonly added: readonly string[];
  /** The numbers of the values that the head refers to, by their JSON. */
  readonly numbers: ReadonlyMap<string, number>;
}

/** Returns `head` with references to its large values. `known` are the values that are stored. Those that are added are numbered from `first`. */
export function outline(head: object, known: ReadonlyMap<string, number>, first: number): Outline {
  const added: string[] = [];
  const numbers = new Map<string, number>();

  function refer(text: string): unknown {
    const number = numbers.get(text) ?? known.get(text) ?? first + added.length;
    if (number === first + added.length) added.push(text);
    numbers.set(text, number);
    return { [member]: number };
  }

  /** Returns a value with its large parts replaced, or a reference to it if it is large without them. */
  function shorten(value: unknown): unknown {
    const short = mapParts(value, shorten);
    const text = JSON.stringify(short);
    return text.length < large ? short : refer(text);
  }

  const text = JSON.stringify(head);
  if (text.length < large && !text.includes(member)) return { text, added, numbers };
  return { text: JSON.stringify(mapParts(JSON.parse(text), shorten)), added, numbers };
}

/** Returns a value with `change` applied to its members or elements. */
function mapParts(value: unknown, change: (part: unknown) => unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(change);
  const parts = Object.fromEntries(Object.entries(value).map(([name, part]) => [name, change(part)]));
  return member in value ? { [member]: parts } : parts;
}

/** Returns the numbers of the values that a JSON text refers to. */
export function referencesIn(text: string): readonly number[] {
  const numbers: number[] = [];
  if (text.includes(member)) insert(JSON.parse(text), (number) => void numbers.push(number));
  return numbers;
}

/** Returns the value of a JSON text, in which `values`, by their numbers, take the places of references. They may contain references too. */
export function restore(text: string, values: ReadonlyMap<number, unknown>): unknown {
  const value: unknown = JSON.parse(text);
  const valueOf = (number: number): unknown => insert(values.get(number), valueOf);
  return text.includes(member) ? insert(value, valueOf) : value;
}

function insert(value: unknown, valueOf: (number: number) => unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((part) => insert(part, valueOf));
  const { [member]: reference, ...others }: Readonly<Record<string, unknown>> = { ...value };
  if (typeof reference === "number") return valueOf(reference);
  const parts = reference === undefined ? others : reference; // an object that has the member itself
  return Object.fromEntries(Object.entries(parts ?? {}).map(([name, part]) => [name, insert(part, valueOf)]));
}
