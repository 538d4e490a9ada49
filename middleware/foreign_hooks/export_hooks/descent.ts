/**
 * Hooks that wait inside `next()` for the result of another system.
 *
 * @module
 */
import { End } from "../../../mod.ts";
import type { Around } from "./onions.ts";

/** Hooks that wait inside `next()`. */
export interface Descent<C, R> {
  /** The context that reached the core. */
  readonly reached: C;
  /** Continues with the result of the core. Returns the result of the hooks. */
  finish(result: R): Promise<R>;
  /** Unwinds the hooks without a result. */
  cancel(): void;
}

/** Runs hooks until they reach the core, or answer without it. */
export function descend<C, R>(
  around: Around<C, R>,
  ctx: C,
): Promise<{ readonly descent: Descent<C, R> } | { readonly answer: R }> {
  const outcome = Promise.withResolvers<{ readonly descent: Descent<C, R> } | { readonly answer: R }>(); // settles once
  const gate = Promise.withResolvers<R>();
  const done = around(ctx, (ctx) => {
    outcome.resolve({ descent: { reached: ctx, finish, cancel } });
    return gate.promise;
  });
  gate.promise.catch(() => {}); // the hooks may have answered without it
  done.then((answer) => outcome.resolve({ answer }), outcome.reject);

  function finish(result: R): Promise<R> {
    gate.resolve(result);
    return done;
  }

  function cancel(): void {
    done.catch(() => {}); // its result is not used
    gate.reject(new End("no result"));
  }

  return outcome.promise;
}
