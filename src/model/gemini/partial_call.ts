/**
 * Calls that Gemini streams: each frame has further values of the input, with the path of each.
 *
 * @module
 */
import { isObject, type UnknownObject } from "../../protocol/shape.ts";
import { objectIn, objectsIn, stringIn, unreadable } from "../response_members.ts";

/** An object or an array that is being built. */
type Container = Record<string, unknown>;

/** Collects the input of a call. */
export interface PartialCall {
  readonly name: string;
  readonly id: unknown;
  /** Adds the values of a frame. */
  readonly add: (call: UnknownObject) => void;
  /** The input so far. */
  readonly input: Container;
}

/** Creates the call that a frame begins. */
export function partialCall(first: UnknownObject): PartialCall {
  const input: Container = { ...objectIn(first, "args") };
  function add(call: UnknownObject): void {
    for (const partial of objectsIn(call, "partialArgs")) {
      assign(input, stringIn(partial, "jsonPath"), valueOf(partial));
    }
  }
  add(first);
  return { name: stringIn(first, "name"), id: first.id, add, input };
}

/** Returns the value of a piece. */
function valueOf(partial: UnknownObject): unknown {
  const name = ["stringValue", "numberValue", "boolValue", "nullValue"].find((name) => name in partial);
  if (name === undefined) return ""; // a text that begins or ends
  return name === "nullValue" ? null : partial[name];
}

/** Sets the value at a path such as `$.cities[0].name`. A text continues the text at this path. */
function assign(input: Container, path: string, value: unknown): void {
  const keys = [...path.matchAll(/\.([^.[\]]+)|\[(\d+)\]|\['([^']*)'\]|\["([^"]*)"\]/g)].map((match) =>
    match[1] ?? match[2] ?? match[3] ?? match[4] ?? ""
  );
  const last = keys.pop();
  if (last === undefined || !path.startsWith("$")) unreadable("jsonPath", "a path below `$`", path);
  let target = input;
  for (const [index, key] of keys.entries()) {
    const next = keys[index + 1] ?? last;
    const isIn = Object.hasOwn(target, key) && (isObject(target[key]) || Array.isArray(target[key]));
    if (!isIn) set(target, key, /^\d+$/.test(next) ? [] : {});
    target = target[key] as Container; // made or found above
  }
  const before = Object.hasOwn(target, last) ? target[last] : undefined;
  set(target, last, typeof before === "string" && typeof value === "string" ? before + value : value);
}

/** Sets an own member, also one that is named `__proto__`. */
function set(target: Container, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
}
