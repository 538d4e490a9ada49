/**
 * Transactions that share one commit, which waits for the disk.
 *
 * @module
 */
import { turn } from "../../stream/tick.ts";
import type { SqlStorage } from "./storage.ts";

/** Executes `work` in a transaction, and resolves to its result once it is committed. */
export type Transact = <T>(work: () => T) => Promise<T>;

/** Work that waits for its transaction. */
interface Waiting {
  /** Executes the work within a transaction. Returns the function that passes the result on after the commit. */
  execute(): () => void;
  /** Executes the work in a transaction of its own, and passes on the result or the failure. */
  executeAlone(): void;
  /** Passes on a failure. */
  fail(error: unknown): void;
}

/**
 * Returns a function that executes the work of one turn of the event loop in one transaction. If one work fails, each is executed in a transaction of its own,
 * so that none fails because of another one.
 */
export function sharedTransactions(storage: SqlStorage): Transact {
  let waiting: Waiting[] = [];

  function commit(): void {
    const group = waiting;
    waiting = [];
    let passOn: readonly (() => void)[];
    let begun = false;
    try {
      passOn = storage.transactionSync(() => {
        begun = true;
        return group.map(({ execute }) => execute());
      });
    } catch (error) {
      for (const each of group) {
        if (begun) each.executeAlone();
        else each.fail(error); // a locked database would make each of them wait again
      }
      return;
    }
    for (const pass of passOn) pass();
  }

  return <T>(work: () => T) =>
    new Promise<T>((resolve, reject) => {
      if (waiting.length === 0) turn(commit);
      waiting.push({
        execute() {
          const result = work();
          return () => resolve(result);
        },
        executeAlone() {
          try {
            resolve(storage.transactionSync(work));
          } catch (error) {
            reject(error);
          }
        },
        fail: reject,
      });
    });
}
