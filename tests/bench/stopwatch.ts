/**
 * Times that can be compared on a machine that does other things too.
 *
 * @module
 */

/** The median times of `cases`, in microseconds. Every round runs each of them once, in any order, so that what disturbs one disturbs all. */
export async function medians<K extends string>(
  cases: Readonly<Record<K, () => Promise<unknown>>>,
  { rounds, warmUp = 5 }: { readonly rounds: number; readonly warmUp?: number },
): Promise<Record<K, number>> {
  const names = Object.keys(cases) as K[]; // exactly its keys
  const times = new Map<K, number[]>(names.map((name) => [name, []]));
  for (let round = -warmUp; round < rounds; round++) {
    for (const name of names.toSorted(() => Math.random() - 0.5)) {
      collect({ type: "minor" }); // nobody pays for what another left behind
      const start = performance.now();
      await cases[name]();
      const time = (performance.now() - start) * 1_000;
      if (round >= 0) times.get(name)?.push(time);
    }
  }
  return Object.fromEntries(names.map((name) => [name, median(times.get(name) ?? [])])) as Record<K, number>; // its keys
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
}

/** Collects garbage, where V8 was told to expose that: what is young, or all of it. */
export function collect(...what: readonly [options?: { readonly type: "minor" }]): void {
  const { gc } = globalThis as { readonly gc?: (...what: readonly unknown[]) => void }; // no type knows of it
  gc?.(...what); // given nothing, and not even undefined, it collects all
}
