/**
 * Pseudorandom numbers: the same for the same seed.
 *
 * @module
 */

/** A generator of random choices. */
export interface Chance {
  /** Returns a whole number from 0, below `end`. */
  below(end: number): number;
  /** Returns one of `choices`. */
  one<T>(choices: readonly [T, ...T[]]): T;
}

/** Creates the generator of `seed` (mulberry32). */
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

/** Returns the hash of `text`, used as a seed (FNV-1a). */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash;
}

/** Returns the seeds to test: the first `count`, or those after `--` on the command line. */
export function seeds(count: number): readonly number[] {
  return Deno.args.length > 0 ? Deno.args.map(Number) : Array.from({ length: count }, (_, seed) => seed);
}

/** Does `work`. A failure names the seed. */
export async function withSeed<T>(seed: number, work: (seed: number) => Promise<T>): Promise<T> {
  try {
    return await work(seed);
  } catch (cause) {
    throw new Error(`It fails with seed ${seed}: try it alone with \`-- ${seed}\``, { cause });
  }
}
