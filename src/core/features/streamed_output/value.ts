/**
 * The partial value of a structured answer, folded from the changes of its events.
 *
 * @module
 */
import type { Json, OutputChange } from "../../../protocol/part.ts";

type Container = Json[] | { [key: string]: Json };

/** Sets a member, also one named `__proto__`, as `JSON.parse()` does. */
export function setMember(container: Container, key: string | number, value: Json): void {
  const members = container as { [key: string | number]: Json }; // an array is indexed by numbers
  if (key !== "__proto__") members[key] = value;
  else Object.defineProperty(container, key, { value, enumerable: true, configurable: true, writable: true });
}

/**
 * A partial value. Folds the changes of `output.delta` events, here or in a client.
 *
 * ```ts
 * import { PartialOutput } from "@jizai/jizai/output";
 * import { assertEquals } from "@std/assert";
 *
 * const output = new PartialOutput();
 * output.add([{ path: [], value: { city: "Kyo" } }]);
 * output.add([{ path: ["city"], text: "to" }]);
 * assertEquals(output.value, { city: "Kyoto" });
 * ```
 */
export class PartialOutput {
  #value: Json | undefined;
  /** The containers on the path of the last change, by depth, unless a reader has received them: these are changed in place, and others are copied first. */
  #own: Container[] = [];

  /** The value so far. Later changes do not change it. Undefined before the first change. */
  get value(): Json | undefined {
    this.#own = [];
    return this.#value;
  }

  /** Applies changes. Throws a `TypeError` if a path leads through a value that is neither an object nor an array. */
  add(changes: readonly OutputChange[]): void {
    for (const change of changes) this.#value = this.#changed(this.#value, change, 0);
  }

  /** Returns the value at a depth of the path, changed. */
  #changed(old: Json | undefined, change: OutputChange, depth: number): Json {
    const { path } = change;
    if (depth === path.length) return "value" in change ? change.value : `${old ?? ""}${change.text}`;
    const key = path[depth] ?? "";
    const container = this.#owned(old, path, depth);
    const member = Object.hasOwn(container, key) ? Reflect.get(container, key) : undefined;
    setMember(container, key, this.#changed(member, change, depth + 1));
    return container;
  }

  /** Returns the container itself if it may be changed, or else a copy. */
  #owned(old: Json | undefined, path: OutputChange["path"], depth: number): Container {
    const own = this.#own[depth];
    if (own !== undefined && own === old) return own;
    if (typeof old !== "object" || old === null) {
      throw new TypeError(`Cannot change the output at ${JSON.stringify(path)}: expected an object or an array`);
    }
    const copy = (Array.isArray(old) ? [...old] : { ...old }) as Container; // isArray() does not narrow readonly arrays
    this.#own[depth] = copy;
    return copy;
  }
}
