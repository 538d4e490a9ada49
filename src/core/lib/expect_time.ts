/**
 * The check of times in options.
 *
 * @module
 */

/** The longest time of a timer, in milliseconds: 24 days. A longer one would fire at once. */
const longest = 2 ** 31 - 1;

/** Throws a `RangeError` that starts with `subject` if a timer cannot run for `ms` milliseconds, or if `ms` is 0, unless `zero` is true. */
export function expectTime(subject: string, ms: number, { zero = false }: { readonly zero?: boolean } = {}): void {
  if ((zero ? ms >= 0 : ms > 0) && ms <= longest) return;
  const least = zero ? "0" : "a positive number up";
  throw new RangeError(`${subject} is ${ms}; expected ${least} to ${longest} milliseconds`);
}
