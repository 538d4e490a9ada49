/**
 * The one fold: the hooks of a point around a core. Hooks are composed once, when the agent is created. The policy of a point, with its
 * core, is passed at the call, so it is visible where the onion is called.
 *
 * @module
 */
import type { Point } from "../../protocol/event.ts";

/** Runs the inner layers. Only they see `change`. */
export type Next<D, R> = (change?: D) => Promise<R>;

/** A function at a point. `C` is its context, `D` the change it may pass to `next()`, `R` its result. */
export type Hook<C, D, R> = (ctx: C, next: Next<D, R>) => Promise<R>;

/** A hook that builds its own layer, for speed. Called as a function, it does the same. */
export interface Layered<C, D, R> extends Hook<C, D, R> {
  /** Returns the layer around `inner`. `wrap` turns a hook into a layer. */
  readonly "~layer": (wrap: Wrap<C, D, R>, inner: Layer<C, D, R>) => Layer<C, D, R>;
}

/** A hook and the name of its middleware. */
export interface Named<C, D, R> {
  /** The name of the middleware. */
  readonly name: string;
  /** The hook. */
  readonly hook: Hook<C, D, R> | Layered<C, D, R>;
}

/** One hook's answer, as a policy sees it. `E` is the engine's own value, which no hook can reach. */
export interface HookAnswer<C, R, E> {
  /** The name of the middleware. */
  readonly name: string;
  /** The context that the hook received. */
  readonly ctx: C;
  /** The engine's own value. */
  readonly own: E;
  /** The value that the hook returned. */
  readonly returned: R;
  /** True if the hook called `next()`. */
  readonly called: boolean;
  /** The result of its last `next()` that did not throw. */
  readonly below: R | undefined;
  /** Runs the inner layers, for a hook that did not. After a failure, it returns the result of the hook's `next()`, if it called it. */
  readonly rest: () => Promise<R>;
}

/** The failure of one hook, as a policy sees it. */
export interface HookFailure<C, R, E> extends Omit<HookAnswer<C, R, E>, "returned" | "called" | "below"> {
  /** The error that the hook threw. */
  readonly error: unknown;
}

/** The differences between one point and the others: data for the one fold. */
export interface PointPolicy<C, D, R, E> {
  /** The point's name, for errors. */
  readonly point: Point;
  /** The innermost function. */
  readonly core: (ctx: C, own: E) => Promise<R>;
  /** Set if `next()` may be called again after the first call has settled. Returns the context for that call. */
  readonly retry?: (ctx: C, own: E) => C;
  /** Advice in the error about a second `next()`. */
  readonly hint?: string;
  /** True if the core always settles after every hook that does not wait for it. Default: false. */
  readonly late?: boolean;
  /** True if hooks return nothing. Default: false. */
  readonly silent?: boolean;
  /** Returns the context of the inner layers. */
  readonly change: (ctx: C, change: D, name: string, own: E) => C;
  /** Called before each hook with the name of its middleware. */
  readonly enter?: (name: string, own: E) => void;
  /** Replaces an answer that is not the result of the inner layers. Default: the answer stands. */
  readonly finalize?: (answer: HookAnswer<C, R, E>) => R | Promise<R>;
  /** Returns an answer in place of a hook that threw. Default: the error is thrown. */
  readonly rescue?: (failure: HookFailure<C, R, E>) => Promise<R>;
}

/** A composed point. `coreAlone` is called in place of the policy's core if no hook is open around it. The onion ends with the value that it returns. */
export type Onion<C, D, R> = <E, B = R>(
  ctx: C,
  own: E,
  policy: PointPolicy<C, D, R, E>,
  coreAlone?: Core<C, R, E, B>,
) => Promise<R | B>;

/** Replaces a result on its way out. */
export type Review<R> = (result: R) => R | Promise<R>;

/** The innermost layer. `review` is applied to the result in place of the hooks that are not open. */
export type Core<C, R, E, B = R> = (
  ctx: C,
  own: E,
  policy: PointPolicy<C, never, R, E>,
  review?: Review<R>,
) => Promise<B>;

/** The inner layers of a hook, around `core`. */
export type Layer<C, D, R> = <E, B = R>(
  ctx: C,
  own: E,
  policy: PointPolicy<C, D, R, E>,
  core: Core<C, R, E, B>,
  review?: Review<R>,
) => Promise<R | B>;

/** Makes a layer of a hook and the layers inside it. */
export type Wrap<C, D, R> = (hook: Hook<C, D, R>, inner: Layer<C, D, R>) => Layer<C, D, R>;

/** Composes `hooks`. The first is the outermost. */
export function compose<C, D, R>(hooks: readonly Named<C, D, R>[]): Onion<C, D, R> {
  const whole = hooks.reduceRight<Layer<C, D, R>>((inner, { name, hook }) => {
    const wrap: Wrap<C, D, R> = (hook, inner) => layerOf(name, hook, inner);
    return "~layer" in hook ? hook["~layer"](wrap, inner) : wrap(hook, inner);
  }, (ctx, own, policy, core, review) => core(ctx, own, policy, review));
  return (ctx, own, policy, coreAlone) =>
    coreAlone ? whole(ctx, own, policy, coreAlone) : whole(ctx, own, policy, core);
}

/** The core of a policy. */
function core<C, R, E>(ctx: C, own: E, policy: PointPolicy<C, never, R, E>, review?: Review<R>): Promise<R> {
  return reviewed(policy.core(ctx, own), review);
}

/** The core inside an open hook. It settles after a hook that does not await it has left, so that the missing `await` is noticed. */
export function awaitedCore<C, R, E>(
  ctx: C,
  own: E,
  policy: PointPolicy<C, never, R, E>,
  review?: Review<R>,
): Promise<R> {
  const result = policy.core(ctx, own);
  return reviewed(policy.late ? result : settleLater(result), review);
}

function reviewed<R>(result: Promise<R>, review?: Review<R>): Promise<R> {
  return review ? result.then(review) : result;
}

function layerOf<C, D, R>(name: string, hook: Hook<C, D, R>, inner: Layer<C, D, R>): Layer<C, D, R> {
  return function layer(ctx, own, policy, _, review) {
    let called = false;
    let open = 0;
    let left = false;
    let below: R | undefined;
    let result: Promise<R> | undefined;

    const settle = (value: R) => {
      below = value;
      open--;
    };
    const close = () => {
      open--;
    };

    function next(change?: D): Promise<R> {
      if (left) return Promise.reject(misuse("after it had returned", name, policy));
      try {
        if (open > 0) throw misuse("again before the first call has settled", name, policy);
        if (called && !policy.retry) throw misuse("twice", name, policy, policy.hint);
        const whole = called && policy.retry ? policy.retry(ctx, own) : ctx;
        called = true;
        const changed = change ? policy.change(whole, change, name, own) : whole;
        result = inner(changed, own, policy, awaitedCore);
      } catch (error) {
        result = settleLater(Promise.reject(error));
      }
      open++;
      result.then(settle, close); // a failure reaches the hook that awaits `result`; leave() reports a hook that does not
      return result;
    }

    function leave(returned: R): R | Promise<R> {
      left = true;
      if (open > 0) throw new TypeError(`Cannot leave ${policy.point}: "${name}" did not await next()`);
      if (returned === undefined && !policy.silent) {
        throw new TypeError(
          `Cannot leave ${policy.point}: "${name}" returned nothing; return the result of next(), or an answer`,
        );
      }
      if (called && returned === below) return returned;
      if (!policy.finalize) return returned;
      const rest = () => inner(ctx, own, policy, awaitedCore);
      return policy.finalize({ name, ctx, own, returned, called, below, rest });
    }

    function fail(error: unknown): Promise<R> {
      left = true;
      if (!policy.rescue) throw error;
      const rest = () => result ?? inner(ctx, own, policy, awaitedCore);
      return policy.rescue({ name, ctx, own, error, rest });
    }

    try {
      policy.enter?.(name, own);
      const returned = hook(ctx, next);
      if (returned !== result || open !== 1) return reviewed(Promise.resolve(returned).then(leave, fail), review);
      left = true; // the hook returned the promise of next() itself, so there is nothing to wait for
      return reviewed(returned, review);
    } catch (error) {
      return reviewed(new Promise<R>((resolve) => resolve(fail(error))), review);
    }
  };
}

function misuse(how: string, name: string, { point }: { readonly point: Point }, hint = ""): TypeError {
  return new TypeError(`Cannot call next() ${how} at ${point} in "${name}"${hint}`);
}

/** Returns a promise that settles a few microtasks after `promise`. */
function settleLater<T>(promise: Promise<T>): Promise<T> {
  return new Promise((resolve) => resolve(promise));
}
