/**
 * Conditions: middleware that acts only for some tools, or only if a predicate holds.
 *
 * @module
 */
import { callPoints, eachHook, points } from "./each_hook.ts";
import { ignoreRejections } from "./lib/json.ts";
import type { Middleware, ToolMiddleware } from "./middleware.ts";
import type { Conditional, Hook, Next } from "./onion.ts";
import type { Scope } from "./scope.ts";
import type { AnyTool, Tool } from "./tool.ts";

/**
 * Limits `hooks` to the calls of one tool, whose input is then typed, or to tools whose whole name matches a regular expression.
 * Throws a `TypeError` if `hooks` has a point that concerns no tool.
 *
 * ```ts
 * import { denied, only } from "@jizai/jizai";
 *
 * const blocker = only("delete_.*|drop", {
 *   name: "blocker",
 *   tool: async () => denied("Deletions are not allowed."),
 * });
 * ```
 */
export function only<I, O, T, V = unknown>(
  which: string | Tool<I, O, T>,
  hooks: ToolMiddleware<V, NoInfer<I>>,
): Middleware<V>;
/** Limits a middleware that does not depend on the input to the calls of one tool, or of tools whose name matches. */
export function only<V>(which: string | AnyTool<never>, middleware: Middleware<V>): Middleware<V>;
export function only<V>(which: string | AnyTool<never>, middleware: Middleware<V>): Middleware<V> {
  const { name = "a middleware" } = middleware;
  const stray = points.find((point) => middleware[point] && !callPoints.includes(point));
  if (stray) throw new TypeError(`Cannot limit "${name}" to tools: its hook at ${stray} concerns no tool`);
  const pattern = typeof which === "string" ? new RegExp(`^(?:${which})$`) : undefined;
  const matches = (name: string) => typeof which === "string" ? pattern?.test(name) === true : name === which.name;
  return conditional(middleware, (ctx) => matches(toolNameOf(ctx)));
}

function toolNameOf(ctx: object): string {
  if ("name" in ctx && typeof ctx.name === "string") return ctx.name;
  const tool = "tool" in ctx ? ctx.tool : undefined;
  return typeof tool === "object" && tool !== null && "name" in tool ? String(tool.name) : "";
}

/**
 * Applies the hooks of `middleware` only if `predicate` returns true. Its tools are always available. If the predicate throws, the hook fails. What a middleware
 * such as `redact()` masks outside of its hooks (requests as they are sent, stored sessions, values in a trace) stays masked unless the predicate returns `false`
 * itself, and no promise.
 *
 * ```ts
 * import { inject } from "@jizai/jizai/middleware/inject";
 * import { when } from "@jizai/jizai";
 *
 * const greeting = when(({ run }) => run.used.turns < 2, inject("This is the first turn."));
 * ```
 */
export function when<V>(
  predicate: (scope: Scope<V>) => boolean | Promise<boolean>,
  middleware: Middleware<V>,
): Middleware<V> {
  const { "~request": request, "~save": save, "~mask": mask } = middleware;
  const isOff = (scope: Scope<V>) => returnsFalse(predicate, scope);
  return {
    ...conditional(middleware, predicate),
    ...(request && { "~request": (value, scope) => isOff(scope) ? value : request(value, scope) }),
    ...(save && { "~save": (value, scope) => isOff(scope) ? value : save(value, scope) }),
    ...(mask && { "~mask": (value, scope) => isOff(scope) ? value : mask(value, scope) }),
  };
}

/** Returns whether a predicate is known to be false. A promise and an error count as true: what hides secrets then applies. */
function returnsFalse<V>(predicate: (scope: Scope<V>) => unknown, scope: Scope<V>): boolean {
  try {
    const holds = predicate(scope);
    ignoreRejections(holds); // the hook that awaits its own promise fails
    return holds === false;
  } catch {
    return false; // the hooks of the middleware fail with the same error
  }
}

function conditional<V>(
  middleware: Middleware<V>,
  holds: (scope: Scope<V>) => boolean | Promise<boolean>,
): Middleware<V> {
  const { groups } = middleware;
  const hooks = eachHook(middleware, (hook) => onlyIf(hook, holds));
  return groups ? { ...hooks, groups: async (ctx) => await holds(ctx) ? groups(ctx) : "parallel" } : hooks;
}

/** Returns a hook that applies only if `holds` returns true. Otherwise the fold skips it, at no cost. */
export function onlyIf<C, D, R>(
  hook: Hook<C, D, R>,
  holds: (ctx: C) => boolean | Promise<boolean>,
): Conditional<C, D, R> {
  const chosen = async (ctx: C, next: Next<D, R>) => await (await holds(ctx) ? hook(ctx, next) : next());
  return Object.assign(chosen, { "~hook": hook, "~applies": holds });
}
