/**
 * Conditions: a middleware that acts only for some tools, or only when a predicate says so.
 *
 * @module
 */
import { eachHook, ofOneCall, points } from "./each_hook.ts";
import type { Beneath, Hook, Layered, Next, Wrap } from "./onion.ts";
import type { Middleware, ToolHooks } from "./points.ts";
import type { Scope } from "./scope.ts";
import type { AnyTool, Tool } from "./tool.ts";

/**
 * `hooks` for calls of one tool, whose input is then typed, or of those whose name matches `pattern` as a whole, a regular expression.
 * Throws a `TypeError` where `hooks` has a point that knows no tool.
 *
 * ```ts
 * import { denied, only } from "@jizai/jizai";
 *
 * const blocker = only("delete_.*|drop", {
 *   name: "blocker",
 *   tool: async () => denied("Not in this house."),
 * });
 * ```
 */
export function only<I, O, T, V = unknown>(
  which: string | Tool<I, O, T>,
  hooks: ToolHooks<V, NoInfer<I>> & Pick<Middleware<V>, "name" | "after" | "requires" | "tools">,
): Middleware<V>;
/** `middleware`, which knows nothing of its input, for calls of one tool, or of those whose name matches. */
export function only<V>(which: string | AnyTool<never>, middleware: Middleware<V>): Middleware<V>;
export function only<V>(which: string | AnyTool<never>, middleware: Middleware<V>): Middleware<V> {
  const { name = "a middleware" } = middleware;
  const stray = points.find((point) => middleware[point] && !ofOneCall.includes(point));
  if (stray) throw new TypeError(`Cannot choose tools for "${name}": at ${stray} there is none`);
  const pattern = typeof which === "string" ? new RegExp(`^(?:${which})$`) : undefined;
  const matches = (name: string) => typeof which === "string" ? pattern?.test(name) === true : name === which.name;
  return chosen(
    middleware,
    (ctx) => matches("name" in ctx && typeof ctx.name === "string" ? ctx.name : toolOf(ctx)),
  );
}

function toolOf(ctx: object): string {
  const tool = "tool" in ctx ? ctx.tool : undefined;
  return typeof tool === "object" && tool !== null && "name" in tool ? String(tool.name) : "";
}

/**
 * `middleware` where `predicate` holds; elsewhere it is as if it were not there. Its tools are there always.
 *
 * ```ts
 * import { inject } from "@jizai/jizai/middleware/inject";
 * import { when } from "@jizai/jizai";
 *
 * const greeting = when(({ run }) => run.used.turns < 2, inject("This is the first turn."));
 * ```
 */
export function when<V>(predicate: (scope: Scope<V>) => boolean, middleware: Middleware<V>): Middleware<V> {
  return chosen(middleware, predicate);
}

/** `middleware`, each of its hooks asked for only where `holds`. */
function chosen<V>(middleware: Middleware<V>, holds: (ctx: Scope<V>) => boolean): Middleware<V> {
  return eachHook(middleware, (hook) => onlyIf(hook, holds));
}

/** `hook` where `holds`; elsewhere it is as if it were not there. */
export function onlyIf<C, D, R>(hook: Hook<C, D, R>, holds: (ctx: C) => boolean): Layered<C, D, R> {
  const chosen = (ctx: C, next: Next<D, R>) => holds(ctx) ? hook(ctx, next) : next();
  function layer<E>(wrap: Wrap<C, D, R, E>, beneath: Beneath<C, R, E>): Beneath<C, R, E> {
    const inside = wrap(hook, beneath);
    return (ctx, own, waited, review) => {
      try {
        return (holds(ctx) ? inside : beneath)(ctx, own, waited, review);
      } catch (error) {
        return Promise.reject(error);
      }
    };
  }
  return Object.assign(chosen, { "~layer": layer });
}

/** What `act` makes of results that it `wants`; elsewhere it is as if it were not there. */
export function reviewIf<C, D, R>(
  wants: (result: R) => boolean,
  act: (ctx: C, result: R) => Promise<R>,
): Layered<C, D, R> {
  const acting = async (ctx: C, next: Next<D, R>) => await act(ctx, await next());
  const chosen = async (ctx: C, next: Next<D, R>) => {
    const result = await next();
    return wants(result) ? await act(ctx, result) : result;
  };
  function layer<E>(wrap: Wrap<C, D, R, E>, beneath: Beneath<C, R, E>): Beneath<C, R, E> {
    return (ctx, own, waited, review) =>
      beneath(ctx, own, waited, (result) => {
        if (!wants(result)) return review ? review(result) : result;
        return wrap(acting, () => Promise.resolve(result))(ctx, own, waited, review);
      });
  }
  return Object.assign(chosen, { "~layer": layer });
}
