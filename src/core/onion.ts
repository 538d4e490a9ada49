/**
 * The one fold. Every point of the lifecycle is an onion of hooks around a core, composed here, once, when the agent is made.
 *
 * @module
 */
import type { Point } from "../protocol/event.ts";

/** Goes on with what lies beneath; `change` is seen by it alone. */
export type Next<D, R> = (change?: D) => Promise<R>;

/** A function at a point: `C` is what it sees, `D` what it may change beneath, `R` what it gives back. */
export type Hook<C, D, R> = (ctx: C, next: Next<D, R>) => Promise<R>;

/** A hook that says by itself what its layer is. Called as any other, it does the same. */
export interface Layered<C, D, R> extends Hook<C, D, R> {
  /** Its layer around what lies beneath; `wrap` makes one of a hook. */
  readonly "~layer": <E>(wrap: Wrap<C, D, R, E>, beneath: Beneath<C, R, E>) => Beneath<C, R, E>;
}

/** A hook and the name of the middleware it belongs to. */
export interface Named<C, D, R> {
  readonly name: string;
  readonly hook: Hook<C, D, R> | Layered<C, D, R>;
}

/** One hook's answer, as a law sees it. `E` is what the engine carries along and no hook can reach. */
export interface Layer<C, R, E> {
  readonly name: string;
  readonly ctx: C;
  readonly own: E;
  readonly returned: R;
  /** Whether the hook called `next()`. */
  readonly called: boolean;
  /** What its last `next()` gave that did not throw. */
  readonly below: R | undefined;
  /** Runs what lies beneath, where the hook did not. */
  readonly rest: () => Promise<R>;
}

/** What sets one point apart from the others. */
export interface Law<C, D, R, E> {
  /** The point's name, for errors. */
  readonly point: Point;
  /** Present where `next()` may be called again after the first call has settled: the context for what then lies beneath. */
  readonly again?: (ctx: C, own: E) => C;
  /** Where to look instead, for the error about a second `next()`. */
  readonly hint?: string;
  /** Whether its core settles later than any hook leaves, so that who does not wait for it is seen, and reviews by itself. Default: false. */
  readonly late?: boolean;
  /** Whether its hooks return nothing. Default: false. */
  readonly silent?: boolean;
  /** The context beneath a layer that passed a change down. */
  readonly change: (ctx: C, change: D, name: string, own: E) => C;
  /** What the engine makes of an answer that is not simply what lies beneath. Default: the answer. */
  readonly seal?: (layer: Layer<C, R, E>) => R | Promise<R>;
}

/** A composed point. */
export type Onion<C, R, E> = (ctx: C, own: E) => Promise<R>;

/** What becomes of a result on its way out. */
export type Review<R> = (result: R) => R | Promise<R>;

/** What lies beneath a layer; `waited` says whether there is a hook above that has to wait for it. */
export type Beneath<C, R, E> = (ctx: C, own: E, waited: boolean, review?: Review<R>) => Promise<R>;

/** Makes a layer of a hook and what lies beneath it. */
export type Wrap<C, D, R, E> = (hook: Hook<C, D, R>, beneath: Beneath<C, R, E>) => Beneath<C, R, E>;

/** Folds `hooks` around `core`; the first is the outermost. */
export function compose<C, D, R, E>(
  hooks: readonly Named<C, D, R>[],
  core: (ctx: C, own: E, review?: Review<R>) => Promise<R>,
  law: Law<C, D, R, E>,
): Onion<C, R, E> {
  if (hooks.length === 0) return core;
  const last: Beneath<C, R, E> = (ctx, own, waited, review) =>
    law.late
      ? core(ctx, own, review)
      // settles later than a hook leaves that does not wait for it: so that it is seen not to
      : reviewed(waited ? late(core(ctx, own)) : core(ctx, own), review);
  const whole = hooks.reduceRight((beneath, { name, hook }) => {
    const wrapped: Wrap<C, D, R, E> = (hook, beneath) => wrap(name, hook, beneath, law);
    return "~layer" in hook ? hook["~layer"](wrapped, beneath) : wrapped(hook, beneath);
  }, last);
  return (ctx, own) => whole(ctx, own, false);
}

/** `result`, reviewed where somebody does. */
function reviewed<R>(result: Promise<R>, review?: Review<R>): Promise<R> {
  return review ? result.then(review) : result;
}

function wrap<C, D, R, E>(
  name: string,
  hook: Hook<C, D, R>,
  beneath: Beneath<C, R, E>,
  law: Law<C, D, R, E>,
): Beneath<C, R, E> {
  return function layer(ctx, own, _, review) {
    let called = false;
    let open = 0;
    let left = false;
    let below: R | undefined;

    const settle = (result: R) => {
      below = result;
      open--;
    };
    const close = () => {
      open--;
    };

    let result: Promise<R> | undefined;

    function next(change?: D): Promise<R> {
      if (left) return Promise.reject(misuse("after it had returned", name, law));
      try {
        if (open > 0) throw misuse("again before the first call has settled", name, law);
        if (called && !law.again) throw misuse("twice", name, law, law.hint);
        const whole = called && law.again ? law.again(ctx, own) : ctx;
        called = true;
        result = beneath(change === undefined ? whole : law.change(whole, change, name, own), own, true);
      } catch (error) {
        result = late(Promise.reject(error));
      }
      open++;
      result.then(settle, close); // whoever awaits it gets a failure; who does not is told below
      return result;
    }

    function leave(returned: R): R | Promise<R> {
      left = true;
      if (open > 0) throw new TypeError(`Cannot leave ${law.point}: "${name}" did not await next()`);
      if (returned === undefined && !law.silent) {
        throw new TypeError(
          `Cannot leave ${law.point}: "${name}" returned nothing; return what next() gave, or an answer`,
        );
      }
      if (called && returned === below) return returned; // whoever passes on what lies beneath says nothing
      return law.seal
        ? law.seal({ name, ctx, own, returned, called, below, rest: () => beneath(ctx, own, true) })
        : returned;
    }

    function fail(error: unknown): never {
      left = true;
      throw error;
    }

    try {
      const returned = hook(ctx, next);
      if (returned !== result || open !== 1) return reviewed(Promise.resolve(returned).then(leave, fail), review);
      left = true; // it passes what lies beneath: there is nothing to wait for
      return reviewed(returned, review);
    } catch (error) {
      left = true;
      return Promise.reject(error);
    }
  };
}

function misuse(how: string, name: string, { point }: { readonly point: Point }, hint = ""): TypeError {
  return new TypeError(`Cannot call next() ${how} at ${point} in "${name}"${hint}`);
}

/** Settles later than `promise`. */
function late<T>(promise: Promise<T>): Promise<T> {
  return new Promise((resolve) => resolve(promise));
}
