/**
 * The one fold. Every point of the lifecycle is an onion of hooks around a core, composed here, once, when the agent is made.
 *
 * @module
 */

/** Goes on with what lies beneath; `change` is seen by it alone. */
export type Next<D, R> = (change?: D) => Promise<R>;

/** A function at a point: `C` is what it sees, `D` what it may change beneath, `R` what it gives back. */
export type Hook<C, D, R> = (ctx: C, next: Next<D, R>) => Promise<R>;

/** A hook and the name of the middleware it belongs to. */
export interface Named<H> {
  readonly name: string;
  readonly hook: H;
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
  readonly point: string;
  /** Present where `next()` may be called again after the first call has settled: the context for what then lies beneath. */
  readonly again?: (ctx: C, own: E) => C;
  /** Where to look instead, for the error about a second `next()`. */
  readonly hint?: string;
  /** Whether its hooks return nothing. Default: false. */
  readonly silent?: boolean;
  /** The context beneath a layer that passed a change down. */
  readonly change: (ctx: C, change: D, name: string, own: E) => C;
  /** What the engine makes of one layer's answer. Default: the answer. */
  readonly seal?: (layer: Layer<C, R, E>) => R | Promise<R>;
}

/** A composed point. */
export type Onion<C, R, E> = (ctx: C, own: E) => Promise<R>;

/** Folds `hooks` around `core`; the first is the outermost. */
export function compose<C, D, R, E>(
  hooks: readonly Named<Hook<C, D, R>>[],
  core: Onion<C, R, E>,
  law: Law<C, D, R, E>,
): Onion<C, R, E> {
  if (hooks.length === 0) return core;
  // settles later than a hook leaves that does not wait for it: so that it is seen not to
  const last: Onion<C, R, E> = (ctx, own) => new Promise((resolve) => resolve(core(ctx, own)));
  return hooks.reduceRight((beneath, hook) => wrap(hook, beneath, law), last);
}

function wrap<C, D, R, E>(
  { name, hook }: Named<Hook<C, D, R>>,
  beneath: Onion<C, R, E>,
  law: Law<C, D, R, E>,
): Onion<C, R, E> {
  return function layer(ctx, own) {
    let called = 0;
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

    function next(change?: D): Promise<R> {
      if (left) return Promise.reject(misuse("after it had returned", name, law));
      let result: Promise<R>;
      if (open > 0) result = refuse(misuse("again before the first call has settled", name, law));
      else if (called > 0 && !law.again) result = refuse(misuse("twice", name, law, law.hint));
      else {
        called++;
        try {
          const whole = called > 1 && law.again ? law.again(ctx, own) : ctx;
          result = beneath(change === undefined ? whole : law.change(whole, change, name, own), own);
        } catch (error) {
          result = refuse(error);
        }
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
      return law.seal
        ? law.seal({ name, ctx, own, returned, called: called > 0, below, rest: () => beneath(ctx, own) })
        : returned;
    }

    function fail(error: unknown): never {
      left = true;
      throw error;
    }

    try {
      return Promise.resolve(hook(ctx, next)).then(leave, fail);
    } catch (error) {
      left = true;
      return Promise.reject(error);
    }
  };
}

function misuse(how: string, name: string, { point }: { readonly point: string }, hint = ""): TypeError {
  return new TypeError(`Cannot call next() ${how} at ${point} in "${name}"${hint}`);
}

/** Rejects as late as what lies beneath would. */
function refuse(error: unknown): Promise<never> {
  return new Promise((resolve) => resolve(Promise.reject(error)));
}
