/**
 * Attacks: an attack makes random attempts against the public API. An attempt throws if the system broke its promise.
 *
 * @module
 */
import type { Chance } from "../support/seeded.ts";

/** One kind of attack. */
export interface Attack {
  /** The name in the report. */
  readonly name: string;
  /** Makes attempts that `chance` determines. Returns their number. Throws if one of them succeeds. */
  attempt(chance: Chance): Promise<number>;
}

/** The longest that one attempt may take, in milliseconds. */
const timeLimit = 10_000;

/** Runs an attack for `ms` milliseconds, with one seed after the other. Returns the number of attempts. Throws an error that names the seed. */
export async function runAttack(
  attack: Attack,
  first: number,
  ms: number,
  seeded: (seed: number) => Chance,
): Promise<number> {
  const end = performance.now() + ms;
  let count = 0;
  for (let seed = first; seed === first || performance.now() < end; seed++) {
    try {
      count += await withinTime(attack.attempt(seeded(seed)));
    } catch (cause) {
      throw new Error(`The attack "${attack.name}" succeeded with seed ${seed}`, { cause });
    }
  }
  return count;
}

/** Rejects if `work` takes longer than one attempt may. */
async function withinTime<T>(work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`It hangs: no end after ${timeLimit} ms`)), timeLimit);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Throws unless `holds`. */
export function expect(holds: boolean, message: () => string): asserts holds {
  if (!holds) throw new Error(message());
}
