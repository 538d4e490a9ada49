/**
 * Changes of many rows in one statement: Postgres commits one statement after another, so fewer of them are faster.
 *
 * @module
 */

/** The most statements at once. Changes that arrive meanwhile go together. */
const mostStatements = 2;

/** The most changes of a statement, and the characters beyond which it takes no more. */
const mostChanges = 200;
const mostCharacters = 1_000_000;

/** A change that waits for its statement. */
interface Waiting<T> {
  readonly key: string;
  readonly change: T;
  readonly length: number;
  readonly done: PromiseWithResolvers<boolean>;
}

/**
 * Returns the function that changes the row with a key. `execute` changes several rows in one statement, each at most once, and returns the keys of those that it has
 * changed. If a statement fails, each change is tried alone, so that none fails because of another one: a change that was made all the same must not be made again.
 */
export function inGroups<T>(
  execute: (changes: readonly T[]) => Promise<ReadonlySet<unknown>>,
): (key: string, change: T, length: number) => Promise<boolean> {
  let waiting: Waiting<T>[] = [];
  let statements = 0;
  /** The keys of the rows that statements are changing. */
  const busy = new Set<string>();

  /** Takes the changes of the next statement: one for each row, since a statement changes a row once. */
  function take(): readonly Waiting<T>[] {
    const taken = new Map<string, Waiting<T>>();
    const left: Waiting<T>[] = [];
    let characters = 0;
    for (const each of waiting) {
      if (taken.has(each.key) || busy.has(each.key) || taken.size >= mostChanges || characters >= mostCharacters) {
        left.push(each);
      } else {
        taken.set(each.key, each);
        characters += each.length;
      }
    }
    waiting = left;
    for (const key of taken.keys()) busy.add(key);
    return [...taken.values()];
  }

  async function make(group: readonly Waiting<T>[]): Promise<void> {
    try {
      const changed = await execute(group.map(({ change }) => change));
      for (const { key, done } of group) done.resolve(changed.has(key));
    } catch (error) {
      if (group.length === 1) group[0]?.done.reject(error);
      else await Promise.all(group.map((each) => make([each])));
    }
  }

  function flush(): void {
    while (waiting.length > 0 && statements < mostStatements) {
      const group = take();
      if (group.length === 0) return; // the statement that changes the row goes on with it
      statements++;
      void make(group).finally(() => { // make() never rejects: it passes failures to the changes
        for (const { key } of group) busy.delete(key);
        statements--;
        flush();
      });
    }
  }

  return (key, change, length) => {
    const done = Promise.withResolvers<boolean>();
    waiting.push({ key, change, length, done });
    if (statements < mostStatements) queueMicrotask(flush); // so that changes of one turn of the event loop go together
    return done.promise;
  };
}
