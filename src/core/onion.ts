/**
 * The one fold: the hooks of a point around a core. Hooks are composed once, when the agent is created. The policy of a point, with its
 * core, is passed at the call, so it is visible where the onion is called.
 *
 * @module
 */
import type { PointPolicy } from "./policy.ts";

/** Runs the inner layers. Only they see `change`. */
export type Next<D, R> = (change?: D) => Promise<R>;

/** A function at a point. `C` is its context, `D` the change it may pass to `next()`, `R` its result. */
export type Hook<C, D, R> = (ctx: C, next: Next<D, R>) => Promise<R>;

/** A hook that the fold skips, at no cost, unless it applies. Called as a function, it does the same. */
export interface Conditional<C, D, R> extends Hook<C, D, R> {
  /** The hook without its condition. */
  readonly "~hook": Hook<C, D, R>;
  /** Whether the hook applies. */
  readonly "~applies": (ctx: C) => boolean | Promise<boolean>;
}

/** A hook and the name of its middleware. */
export interface Named<C, D, R> {
  /** The name of the middleware. */
  readonly name: string;
  /** The hook. */
  readonly hook: Hook<C, D, R> | Conditional<C, D, R>;
}

/** A composed point. The fold passes `core` inward, in place of the policy's own, once a hook is open around it. */
export type Onion<C, D, R> = <E>(
  ctx: C,
  locals: E,
  policy: PointPolicy<C, D, R, E>,
  core?: (ctx: C, locals: E, policy: PointPolicy<C, never, R, E>) => Promise<R>,
) => Promise<R>;

/** Composes `hooks`. The first is the outermost. */
export function compose<C, D, R>(hooks: readonly Named<C, D, R>[]): Onion<C, D, R> {
  return hooks.reduceRight<Onion<C, D, R>>(
    around,
    (ctx, locals, policy, core) => core ? core(ctx, locals, policy) : policy.core(ctx, locals),
  );
}

/** Returns the layer of a hook around `inner`. Where a conditional hook does not apply, it is `inner` itself. */
function around<C, D, R>(inner: Onion<C, D, R>, { name, hook }: Named<C, D, R>): Onion<C, D, R> {
  if (!("~applies" in hook)) return layerOf(name, hook, inner);
  const whole = layerOf(name, hook["~hook"], inner);
  const failing = (error: unknown) => layerOf(name, () => Promise.reject(error), inner); // the hook fails, and a policy may rescue it
  const chosen = (applies: boolean) => applies ? whole : inner;
  return (ctx, locals, policy, core) => {
    let applies: boolean | Promise<boolean>;
    try {
      applies = hook["~applies"](ctx);
    } catch (error) {
      return failing(error)(ctx, locals, policy);
    }
    if (typeof applies === "boolean") return chosen(applies)(ctx, locals, policy, core);
    return applies.then(chosen, failing).then((layer) => layer(ctx, locals, policy, core));
  };
}

function layerOf<C, D, R>(name: string, hook: Hook<C, D, R>, inner: Onion<C, D, R>): Onion<C, D, R> {
  return function layer(ctx, locals, policy) {
    let called = false;
    let unsettled = 0;
    let hasLeft = false;
    let below: R | undefined;
    let result: Promise<R> | undefined;

    const settle = (value: R) => {
      below = value;
      unsettled--;
    };
    const close = () => {
      unsettled--;
    };

    function next(change?: D): Promise<R> {
      if (hasLeft) return Promise.reject(misuse("after it had returned", name, policy));
      try {
        if (unsettled > 0) throw misuse("again before the first call has settled", name, policy);
        const whole = called ? policy.retry?.(ctx, locals) : ctx;
        if (whole === undefined) throw misuse("twice", name, policy, policy.hint?.(ctx));
        called = true;
        const changed = change ? policy.change(whole, change, name, locals) : whole;
        result = inner(changed, locals, policy, awaitedCore);
      } catch (error) {
        result = settleLater(Promise.reject(error));
      }
      unsettled++;
      result.then(settle, close); // a failure reaches the hook that awaits `result`; leave() reports a hook that does not
      return result;
    }

    const runInner = () => inner(ctx, locals, policy, awaitedCore);

    function leave(returned: R): R | Promise<R> {
      hasLeft = true;
      if (unsettled > 0) throw new TypeError(`Cannot leave ${policy.point}: "${name}" did not await next()`);
      if (returned === undefined && !policy.silent) {
        throw new TypeError(
          `Cannot leave ${policy.point}: "${name}" returned nothing; return the result of next(), or an answer`,
        );
      }
      if ((called && returned === below) || !policy.finalize) return returned;
      return policy.finalize({ name, ctx, locals, returned, called, below, runInner });
    }

    function fail(error: unknown): Promise<R> {
      hasLeft = true;
      if (!policy.rescue) throw error;
      return policy.rescue({ name, ctx, locals, error, runInner: () => result ?? runInner() });
    }

    try {
      policy.enter?.(name, locals);
      const returned = hook(ctx, next);
      if (returned !== result || unsettled !== 1) return Promise.resolve(returned).then(leave, fail);
      hasLeft = true; // the hook returned the promise of next() itself, so there is nothing to wait for
      return returned;
    } catch (error) {
      return new Promise((resolve) => resolve(fail(error)));
    }
  };
}

/** The core inside an open hook. It settles after a hook that does not await it has left, so that the missing `await` is noticed. */
function awaitedCore<C, R, E>(ctx: C, locals: E, policy: PointPolicy<C, never, R, E>): Promise<R> {
  const result = policy.core(ctx, locals);
  return policy.late ? result : settleLater(result);
}

function misuse(how: string, name: string, { point }: { readonly point: string }, reason = ""): TypeError {
  return new TypeError(`Cannot call next() ${how} at ${point} in "${name}"${reason && ": "}${reason}`);
}

/** Returns a promise that settles a few microtasks after `promise`. */
function settleLater<T>(promise: Promise<T>): Promise<T> {
  return new Promise((resolve) => resolve(promise));
}
