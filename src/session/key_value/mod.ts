/**
 * The key-value port, and the adapter that keeps texts in memory.
 *
 * @module
 */
import { boundedCache } from "../../core/bounded_cache.ts";
import type { KeyValue } from "../../protocol/key_value.ts";
import { expectNames } from "../../protocol/shape.ts";
import { sumOf } from "./encoding.ts";
import { promiseTry } from "../../stream/tick.ts";
export type { IncrementOptions, KeyValue, KeyValueOptions } from "../../protocol/key_value.ts";

// Texts by key in memory.

/** The bounds of `memoryKeyValue()`. */
export interface MemoryKeyValueOptions {
  /** The number of keys. Beyond, the key that was written longest ago is deleted. Default: 10,000. */
  readonly max?: number;
  /** The bytes of all keys and texts, counted as two for each character. Beyond, keys are deleted in the same way. Default: 67,108,864. */
  readonly maxBytes?: number;
}

interface Stored {
  readonly value: string;
  /** In milliseconds since 1970. */
  readonly expires: number;
}

/**
 * Keeps texts by key in the memory of this process.
 *
 * ```ts
 * import { memoryKeyValue } from "@jizai/jizai/session/key_value";
 * import { assertEquals } from "@std/assert";
 *
 * const values = memoryKeyValue();
 * await values.set("greeting", "Hello!", { expireIn: 60_000 });
 * assertEquals(await values.get("greeting"), "Hello!");
 * assertEquals([await values.increment("visits"), await values.increment("visits", { by: 2 })], [1, 3]);
 * ```
 */
export function memoryKeyValue(options: MemoryKeyValueOptions = {}): KeyValue {
  expectNames("Cannot create memoryKeyValue()", options, ["max", "maxBytes"]);
  const { max = 10_000, maxBytes = 67_108_864 } = options;
  const stored = boundedCache<Stored>({ max, maxBytes, maxOwnerBytes: Infinity, expireIn: Infinity });

  function find(key: string): Stored | undefined {
    const found = stored.get(key);
    return found && found.expires > Date.now() ? found : undefined;
  }

  function put(key: string, value: string, expires: number): void {
    const bytes = 2 * (key.length + value.length);
    stored.put(key, { value, expires }, { bytes, owner: undefined, pinned: false });
  }

  return {
    get: (key) => Promise.resolve(find(key)?.value),
    set: (key, value, { expireIn = Infinity } = {}) => promiseTry(() => put(key, value, Date.now() + expireIn)),
    increment: (key, { by = 1, expireIn = Infinity } = {}) =>
      promiseTry(() => {
        const found = find(key);
        const sum = sumOf(key, found?.value, by);
        put(key, String(sum), found?.expires ?? Date.now() + expireIn);
        return sum;
      }),
    delete: (key) => promiseTry(() => stored.remove(key)),
  };
}
