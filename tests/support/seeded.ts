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

/** A number made of `text`, to seed what is always the same about it (FNV-1a). */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash;
}

/** The seeds to try: the first `count`, or those that stand after `--` on the command line. */
export function seeds(count: number): readonly number[] {
  return Deno.args.length > 0 ? Deno.args.map(Number) : Array.from({ length: count }, (_, seed) => seed);
}

/** Does `work`, and says of a failure with which seed it was. */
export async function withSeed<T>(seed: number, work: (seed: number) => Promise<T>): Promise<T> {
  try {
    return await work(seed);
  } catch (cause) {
    throw new Error(`It fails with seed ${seed}: try it alone with \`-- ${seed}\``, { cause });
  }
}
