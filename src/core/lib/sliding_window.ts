/**
 * Counts events by key within a sliding window of time.
 *
 * @module
 */

/** The bounds of a window. */
export interface WindowOptions {
  /** Events that one key may have within one window. */
  readonly limit: number;
  /** Length of the window in milliseconds. */
  readonly window: number;
}

/**
 * Returns a function that counts an event of `key` and returns undefined.
 *
 * If the key already has `limit` events in the window, the function counts nothing and returns the seconds until there is room. A key is forgotten one
 * window after its last event.
 *
 * Throws a `RangeError` for `owner`, the function that has the options, if `limit` is not a whole number of 1 or more, or `window` is not positive.
 */
export function slidingWindow(owner: string, options: WindowOptions): (key: string) => number | undefined {
  checkWindow(owner, options);
  const { limit, window } = options;
  /** Times of the counted events by key, least recently used key first. */
  const counted = new Map<string, readonly number[]>();

  function forgetBefore(start: number): void {
    for (const [key, times] of counted) {
      if ((times.at(-1) ?? 0) > start) return;
      counted.delete(key);
    }
  }

  return (key) => {
    const now = Date.now();
    const start = now - window;
    forgetBefore(start);
    const times = counted.get(key)?.filter((time) => time > start) ?? [];
    const [oldest = now] = times;
    if (times.length >= limit) return Math.ceil((oldest - start) / 1_000);
    counted.delete(key);
    counted.set(key, [...times, now]);
    return undefined;
  };
}

/** Throws a `RangeError` for `owner`, the function that has the options, if they bound no window. */
export function checkWindow(owner: string, { limit, window }: WindowOptions): void {
  if (!Number.isInteger(limit) || limit < 1) {
    throw new RangeError(`Cannot create ${owner}(): \`limit\` is ${limit}; expected a whole number of 1 or more`);
  }
  if (!(typeof window === "number" && window > 0)) {
    throw new RangeError(
      `Cannot create ${owner}(): \`window\` is ${window}; expected a positive number of milliseconds`,
    );
  }
}
