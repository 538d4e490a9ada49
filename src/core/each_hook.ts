/**
 * Functions over all hooks of a middleware.
 *
 * @module
 */
import type { Middleware } from "./middleware.ts";
import type { Hook } from "./onion.ts";
import { expectNoPromise } from "./policy.ts";
import type { Change, Scope } from "./scope.ts";
import type { Point } from "../protocol/event.ts";

/** The names of all points. */
export const points = [
  "session",
  "input",
  "prompt",
  "turn",
  "model",
  "tool",
  "approval",
  "execute",
  "stop",
  "compact",
  "subagent",
  "error",
  "abort",
] as const satisfies readonly Point[];

/** The points that concern one call. */
export const callPoints: readonly Point[] = ["tool", "approval", "execute"];

const otherKeys = [
  "name",
  "after",
  "before",
  "requires",
  "interfaceVersion",
  "inherit",
  "groups",
  "tools",
  "toolPrefixes",
  "~request",
  "~save",
  "~mask",
  "~steps",
] as const;

/** Returns a hook around `hook`. */
export type WrapHook<V> = <C extends Scope<V>, D extends Change, R>(hook: Hook<C, D, R>, point: Point) => Hook<C, D, R>;

/** Returns `middleware` with each of its hooks wrapped. Its other fields stay. Throws a `TypeError` for a promise, which has no hooks. */
export function eachHook<V>(middleware: Middleware<V>, wrap: WrapHook<V>): Middleware<V> {
  expectNoPromise("Cannot use a middleware", middleware);
  const kept = otherKeys.map((key) => [key, middleware[key]]);
  const hooks = points.map((point) => {
    const hook = middleware[point] as Hook<Scope<V>, Change, unknown> | undefined; // `wrap` does not depend on the types of a point
    return [point, hook && wrap(hook.bind(middleware), point)];
  });
  return Object.fromEntries([...kept, ...hooks].filter(([, value]) => value !== undefined));
}
