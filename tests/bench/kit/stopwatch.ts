/**
 * Times that are comparable although the machine does other work.
 *
 * @module
 */

/** Returns the median times of `cases`, in microseconds. Each round runs every case once, in random order, so that a disturbance affects all of them equally. */
export async function medians<K extends string>(
  cases: Readonly<Record<K, () => Promise<unknown>>>,
  { rounds, warmUp = 5 }: { readonly rounds: number; readonly warmUp?: number },
): Promise<Record<K, number>> {
  const names = Object.keys(cases) as K[]; // exactly its keys
  const times = new Map<K, number[]>(names.map((name) => [name, []]));
  for (let round = -warmUp; round < rounds; round++) {
    for (const name of names.toSorted(() => Math.random() - 0.5)) {
      collectGarbage({ type: "minor" }); // so that no case pays for the garbage of another
      const start = performance.now();
      await cases[name]();
      const time = (performance.now() - start) * 1_000;
      if (round >= 0) times.get(name)?.push(time);
    }
  }
  return Object.fromEntries(names.map((name) => [name, median(times.get(name) ?? [])])) as Record<K, number>; // its keys
}

/** Returns the median of `values`. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
}

/** Collects garbage if V8 exposes `gc`: all of it, or with an argument only young objects. */
export function collectGarbage(...options: readonly [{ readonly type: "minor" }?]): void {
  const { gc } = globalThis as { readonly gc?: (...options: readonly unknown[]) => void }; // absent without --expose-gc
  gc?.(...options); // gc(undefined) would not collect everything
}

/** Returns the megabytes of heap in use after a collection. */
export function usedHeap(): number {
  collectGarbage();
  const { heapUsed, external } = Deno.memoryUsage();
  return (heapUsed + external) / 1_048_576;
}
