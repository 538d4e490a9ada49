/**
 * Counts events by key within a window of time, for one process or for several.
 *
 * @module
 */
import type { KeyValue } from "../../protocol/key_value.ts";
import { expectCount } from "./options.ts";

// Counts events by key within a sliding window of time.

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
function slidingWindow(owner: string, options: WindowOptions): (key: string) => number | undefined {
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
function checkWindow(owner: string, { limit, window }: WindowOptions): void {
  expectCount(`Cannot create ${owner}()`, { limit });
  if (!(typeof window === "number" && window > 0)) {
    throw new RangeError(
      `Cannot create ${owner}(): \`window\` is ${window}; expected a positive number of milliseconds`,
    );
  }
}

// Counts events by key within a window of time, for several processes.

/** The number of slices of a window. */
const slices = 10;

/**
 * Returns a function that counts an event of `key` in a key-value database and resolves to undefined.
 *
 * If the key already has `limit` events in the window, the function resolves to the seconds until there is room. Each tenth of the window has a counter of its
 * own. An event counts until its slice has left the window, so no window of the given length has more than `limit` events, and an event may count for a tenth
 * longer. Processes must have the same time. Counters are named after `owner`, `limit` and `window`: processes and functions with the same ones count together.
 *
 * Throws a `RangeError` for `owner`, the function that has the options, if `limit` is not a whole number of 1 or more, or `window` is not positive.
 */
function sharedWindow(
  owner: string,
  options: WindowOptions,
  keyValue: KeyValue,
): (key: string) => Promise<number | undefined> {
  checkWindow(owner, options);
  const { limit, window } = options;
  const length = Math.max(1, window / slices);
  const before = Math.ceil(window / length);

  return async (key) => {
    const now = Date.now();
    const current = Math.floor(now / length);
    const counter = (slice: number) => `${owner}/${limit}/${window}/${slice}/${key}`;
    // Processes that count at the same time count before they read, so that one of them sees both events.
    const currentCount = await keyValue.increment(counter(current), { expireIn: 2 * (window + length) });
    const earlier = await Promise.all(
      Array.from({ length: before }, async (_, index) => {
        const slice = current - before + index;
        return { slice, count: Number(await keyValue.get(counter(slice)) ?? 0) };
      }),
    );
    if (earlier.reduce((sum, { count }) => sum + count, currentCount) <= limit) return undefined;
    await keyValue.increment(counter(current), { by: -1 });
    const oldest = earlier.find(({ count }) => count > 0)?.slice ?? current;
    return Math.max(1, Math.ceil(((oldest + before + 1) * length - now) / 1_000));
  };
}

/** Returns a function that counts an event of a key: in `keyValue`, as `sharedWindow()` does, or without one in the memory of this process. */
export function windowCounter(
  owner: string,
  options: WindowOptions,
  keyValue: KeyValue | undefined,
): (key: string) => number | undefined | Promise<number | undefined> {
  return keyValue ? sharedWindow(owner, options, keyValue) : slidingWindow(owner, options);
}
