/**
 * Hooks that are half way through: they have gone down, and wait for another system to say what came of it.
 *
 * @module
 */
import { End } from "../../../mod.ts";
import type { Around } from "./onions.ts";

/** Hooks that are half way through. */
export interface Passage<C, R> {
  /** What they passed down. */
  readonly reached: C;
  /** Says what came of it, and gives what they make of that. */
  come(result: R): Promise<R>;
  /** Has them unwind: nothing came of it that anybody was told. */
  leave(): void;
}

/** Has hooks go down. Gives where they have arrived, or what they answered instead. */
export async function descend<C, R>(
  around: Around<C, R>,
  ctx: C,
): Promise<{ readonly passage: Passage<C, R> } | { readonly answer: R }> {
  const reached = Promise.withResolvers<{ readonly passage: Passage<C, R> }>();
  const gate = Promise.withResolvers<R>();
  const done = around(ctx, (ctx) => {
    reached.resolve({ passage: { reached: ctx, come, leave } });
    return gate.promise;
  });
  gate.promise.catch(() => {}); // where nobody waits for it

  function come(result: R): Promise<R> {
    gate.resolve(result);
    return done;
  }

  function leave(): void {
    done.catch(() => {}); // nobody waits for it any more
    gate.reject(new End("nothing came of it"));
  }

  return await Promise.race([reached.promise, done.then((answer) => ({ answer }))]);
}
