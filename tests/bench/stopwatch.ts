/**
 * Times that can be compared on a machine that does other things too.
 *
 * @module
 */

/** The median times of `cases`, in microseconds. Every round runs each of them once, so that what disturbs one disturbs all. */
export async function medians<K extends string>(
  cases: Readonly<Record<K, () => Promise<unknown>>>,
  { rounds, warmUp = 5 }: { readonly rounds: number; readonly warmUp?: number },
): Promise<Record<K, number>> {
  const names = Object.keys(cases) as K[]; // exactly its keys
  const times = new Map<K, number[]>(names.map((name) => [name, []]));
  for (let round = -warmUp; round < rounds; round++) {
    for (const name of names) {
      const start = performance.now();
      await cases[name]();
      const time = (performance.now() - start) * 1_000;
      if (round >= 0) times.get(name)?.push(time);
    }
    const first = names.shift();
    if (first !== undefined) names.push(first); // whoever comes first pays for what the last one left behind
  }
  return Object.fromEntries(names.map((name) => [name, median(times.get(name) ?? [])])) as Record<K, number>; // its keys
}

/** The value in the middle. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
}
