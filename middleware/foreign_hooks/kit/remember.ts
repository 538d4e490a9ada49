/**
 * A bounded memory.
 *
 * @module
 */

/** The most entries of a map. */
const most = 1_000;

/** Returns the value of a key and makes it the newest entry. Beyond 1,000 entries the oldest is forgotten, which `onForget` receives. */
export function remember<T>(
  all: Map<string, T>,
  key: string,
  create: () => T,
  onForget: (value: T) => void = () => {},
): T {
  const value = all.get(key) ?? create();
  all.delete(key);
  all.set(key, value);
  const [oldest] = all;
  if (all.size > most && oldest) {
    all.delete(oldest[0]);
    onForget(oldest[1]);
  }
  return value;
}
