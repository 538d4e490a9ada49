/**
 * Chance that can be had again: the same numbers for the same seed.
 *
 * @module
 */

/** Chooses by chance. */
export interface Chance {
  /** A whole number from 0, below `end`. */
  below(end: number): number;
  /** One of `choices`. */
  one<T>(choices: readonly [T, ...T[]]): T;
}

/** The chance of `seed` (mulberry32). */
export function seeded(seed: number): Chance {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (end: number) => Math.floor(next() * end);
  return { below, one: (choices) => choices[below(choices.length)] ?? choices[0] };
}
