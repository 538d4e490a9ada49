/**
 * The key-value port: texts and counters that expire.
 *
 * @module
 */

/** A database of texts by key. A key has 1 to 500 characters, a text at most 500,000. */
export interface KeyValue {
  /** Returns the text of a key, or undefined if there is none. A counter is returned as decimal digits. */
  get(key: string): Promise<string | undefined>;
  /** Sets the text of a key. It replaces the old text and its expiry. */
  set(key: string, value: string, options?: KeyValueOptions): Promise<void>;
  /**
   * Adds to a counter atomically, and returns the sum. A missing key counts as 0. An existing key keeps its expiry. Rejects with a `TypeError` if the text of
   * the key is not a whole number.
   */
  increment(key: string, options?: IncrementOptions): Promise<number>;
  /** Deletes a key. */
  delete(key: string): Promise<void>;
}

/** Options of `set()`. */
export interface KeyValueOptions {
  /** Milliseconds after which the key is deleted. Default: never. */
  readonly expireIn?: number;
}

/** Options of `increment()`. */
export interface IncrementOptions extends KeyValueOptions {
  /** The whole number to add. Default: 1. */
  readonly by?: number;
}
