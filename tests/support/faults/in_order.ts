/**
 * Real I/O at the pace of a simulation.
 *
 * @module
 */
import { outside } from "../simulation.ts";

/** Returns a function that does one operation after another, outside the simulation and in its order. They take no simulated time. */
export function inOrder(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const done = last.then(() => outside(work));
    last = done.catch(() => {}); // the caller receives the error
    return done;
  };
}
