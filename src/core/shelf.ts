/**
 * What is kept in memory: so many things, each for so long.
 *
 * @module
 */

interface Kept<T> {
  readonly thing: T;
  readonly expires: number;
}

/** Things by their ids. What is too old is forgotten, and of those that nobody uses, where they are too many, what was put there longest ago. */
export function ttlCache<T>({ max, expireIn }: { readonly max: number; readonly expireIn: number }) {
  const used = new Map<string, Kept<T>>();
  const unused = new Map<string, Kept<T>>();

  function forget(): void {
    const now = Date.now();
    for (const things of [used, unused]) {
      for (const [id, { expires }] of things) {
        const fits = things === used || unused.size <= max;
        if (expires > now && fits) break;
        things.delete(id);
      }
    }
  }

  function remove(id: string): void {
    used.delete(id);
    unused.delete(id);
  }

  return {
    get(id: string): T | undefined {
      forget();
      return (used.get(id) ?? unused.get(id))?.thing;
    },
    put(id: string, thing: T, inUse: boolean): void {
      remove(id);
      (inUse ? used : unused).set(id, { thing, expires: Date.now() + expireIn });
      forget();
    },
    remove,
    ids(): readonly string[] {
      forget();
      return [...used.keys(), ...unused.keys()];
    },
  };
}
